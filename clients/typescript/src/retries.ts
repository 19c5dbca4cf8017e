import { problemOf } from "./errors.js";

export const KEY_HEADER = "Idempotency-Key";
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

/** Returns a fetch that sends a request again while it fails for a reason that passes. */
export function withRetries(fetch: typeof globalThis.fetch, retries: number, timeoutMs: number) {
  return async (request: Request): Promise<Response> => {
    for (let retry = 0; ; retry++) {
      const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)]);
      const outcome = await fetch(request.clone(), { signal }).catch((error: unknown) => new Lost(error));
      if (!(outcome instanceof Lost) && outcome.ok) return outcome;
      if (request.signal.aborted || retry === retries || !(await isWorthARetry(request, outcome))) {
        if (outcome instanceof Lost) throw outcome.error;
        return outcome;
      }
      await pause(millisecondsBefore(retry, outcome));
    }
  };
}

/** A request without a response. */
class Lost {
  constructor(readonly error: unknown) {}

  get wasUnreachable(): boolean {
    const cause = this.error instanceof Error ? this.error.cause : undefined;
    return typeof cause === "object" && cause !== null && "code" in cause && cause.code === "ECONNREFUSED";
  }
}

/** Whether the request was certainly not carried out, or carrying it out twice changes nothing. */
async function isWorthARetry(request: Request, outcome: Response | Lost): Promise<boolean> {
  const isRepeatable = ["GET", "PUT", "DELETE"].includes(request.method) || request.headers.has(KEY_HEADER);
  if (outcome instanceof Lost) return isRepeatable || outcome.wasUnreachable;
  if (outcome.status === 409) return (await problemOf(outcome)).code === "Idempotency.InFlight";
  return outcome.status === 429 || (isRepeatable && [502, 503, 504].includes(outcome.status));
}

/** Returns what the service asks for, or else twice as long each time, with jitter so that clients spread. */
function millisecondsBefore(retry: number, outcome: Response | Lost): number {
  const asked = outcome instanceof Lost ? null : outcome.headers.get("Retry-After");
  if (asked !== null && /^[0-9]+$/.test(asked)) return Number(asked) * 1000;
  return (0.5 + Math.random() / 2) * Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** retry);
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
