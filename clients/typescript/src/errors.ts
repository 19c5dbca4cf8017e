import type { components } from "./schema.js";

type Model = components["schemas"];

/** The service, or a proxy before it, responded with an error status. Branch on `code`; it is empty from a proxy. */
export class ProblemError extends Error {
  readonly code: string;
  readonly detail: string;
  readonly requestId: string | null;
  /** Every fault of the request, with a pointer to its place. */
  readonly errors: readonly Model["Fault"][];

  constructor(
    readonly status: number,
    { code = "", detail = "", requestId, errors }: Partial<Model["Problem"]>,
  ) {
    const faults = (errors ?? []).map((each) => `\n${each.pointer}: ${each.code}: ${each.message}`);
    super(`${status} ${code}: ${detail}${faults.join("")}`);
    this.name = "ProblemError";
    this.code = code;
    this.detail = detail;
    this.requestId = requestId ?? null;
    this.errors = errors ?? [];
  }
}

export async function problemOf(response: Response): Promise<ProblemError> {
  const text = await response.clone().text();
  try {
    return new ProblemError(response.status, JSON.parse(text));
  } catch {
    return new ProblemError(response.status, { detail: text.slice(0, 500) });
  }
}

/** A job that was waited for has failed; `job` says why in its `error`. */
export class JobFailedError extends Error {
  constructor(readonly job: Model["JobStatusView"]) {
    super(`job ${job.jobId} failed` + (job.error ? `: ${job.error.code}: ${job.error.message}` : ""));
    this.name = "JobFailedError";
  }
}

/** A delivery that doesn't come from the service, or is old: respond with 400. */
export class WebhookRefusedError extends Error {
  override readonly name = "WebhookRefusedError";
}
