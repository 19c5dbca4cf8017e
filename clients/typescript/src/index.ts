/**
 * The TypeScript client of Tidemark.
 *
 *     const { api, wait, pages } = connect({ key, baseUrl });
 *     const customer = await dataOf(api.POST("/v1/customer", { body: { abn: "51824753556" } }));
 *     for await (const row of pages("/v1/transactions", "transactions")) …
 *
 * `api` is a client of openapi-fetch: paths, bodies and responses have the types of the OpenAPI document.
 */
import createClient, { type Client, type MaybeOptionalInit } from "openapi-fetch";
import type { PathsWithMethod } from "openapi-typescript-helpers";

import { JobFailedError, problemOf } from "./errors.js";
import { KEYED, QUERIES } from "./operations.js";
import { KEY_HEADER, withRetries } from "./retries.js";
import type { components, paths } from "./schema.js";

export { JobFailedError, ProblemError, WebhookRefusedError } from "./errors.js";
export { verifyWebhook, type Event } from "./webhooks.js";
export type { components, paths };

const LONGEST_WAIT_S = 30; // the longest `wait` that the service takes
const ITEMS_ON_A_PAGE = 500;

export interface Options {
  /** An API key. */
  key: string;
  /** Address of the service. */
  baseUrl: string;
  /** How often a request is sent again after 429, 502, 503, 504 or a lost connection. */
  retries?: number;
  /** How long one request may take. */
  timeoutMs?: number;
  fetch?: typeof fetch;
}

type Model = components["schemas"];
type Gets = PathsWithMethod<paths, "get">;
type Init<P extends Gets> = MaybeOptionalInit<paths[P], "get">;
type Data<P extends Gets> = paths[P]["get"] extends {
  responses: { 200: { content: { "application/json": { data: infer D } } } };
}
  ? D
  : never;
type ListOf<D> = { [K in keyof D]: D[K] extends readonly unknown[] ? K : never }[keyof D] & string;
type Item<D, L extends keyof D> = D[L] extends readonly (infer I)[] ? I : never;

export interface Tidemark {
  /** Sends a request: `api.GET(path, { params, body })`. A refusal rejects with a `ProblemError`. */
  api: Client<paths>;
  /** Waits until a job has ended. Rejects with `JobFailedError` if it has failed, or with an error if the time is up. */
  wait(jobId: string, options?: { timeoutMs?: number }): Promise<Model["JobStatusView"]>;
  /** Yields the items of a list, page after page; `list` is its name in the response. */
  pages<P extends Gets, L extends ListOf<Data<P>>>(
    path: P,
    list: L,
    init?: Init<P>,
    count?: number,
  ): AsyncGenerator<Item<Data<P>, L>>;
}

export function connect({ key, baseUrl, retries = 5, timeoutMs = 60_000, fetch = globalThis.fetch }: Options): Tidemark {
  const api = createClient<paths>({
    baseUrl,
    headers: { "x-api-key": key },
    fetch: withRetries(fetch, retries, timeoutMs),
  });
  api.use({
    onRequest({ request, schemaPath }) {
      const takesKey = request.method === "POST" && KEYED.has(schemaPath);
      if (takesKey && !request.headers.has(KEY_HEADER)) request.headers.set(KEY_HEADER, crypto.randomUUID());
    },
    async onResponse({ response }) {
      if (!response.ok) throw await problemOf(response);
    },
  });

  async function wait(jobId: string, { timeoutMs = 600_000 } = {}): Promise<Model["JobStatusView"]> {
    const endsAt = Date.now() + timeoutMs;
    for (;;) {
      const left = (endsAt - Date.now()) / 1000;
      const query = { wait: Math.max(0, Math.min(LONGEST_WAIT_S, Math.floor(left))) };
      const job = await dataOf(api.GET("/v1/jobs/{jobId}/status", { params: { path: { jobId }, query } }));
      if (job.status === "Failed") throw new JobFailedError(job);
      if (job.status === "Completed" || job.status === "CompletedWithErrors") return job;
      if (left <= 0) throw new Error(`job ${jobId} has not ended: ${job.status}`);
    }
  }

  async function* pages<P extends Gets, L extends ListOf<Data<P>>>(
    path: P,
    list: L,
    init?: Init<P>,
    count = ITEMS_ON_A_PAGE,
  ): AsyncGenerator<Item<Data<P>, L>> {
    const get = api.GET as unknown as (path: P, init: object) => Promise<{ data?: { data: Page<P, L> } }>;
    const params = { ...(init as { params?: { query?: object } } | undefined)?.params };
    let query: Query | null = { ...params.query, ...firstPage(path, count) };
    while (query !== null) {
      const data: Page<P, L> = await dataOf(get(path, { ...init, params: { ...params, query } }));
      yield* data[list];
      query = nextPage(path, query, data, data[list]);
    }
  }

  return { api, wait, pages };
}

/** Returns `data` of a response: `await dataOf(api.GET(…))`. A remark of the service is a warning on the console. */
export async function dataOf<D>(response: Promise<{ data?: { data: D; message?: string | null } }>): Promise<D> {
  const { data: envelope } = await response;
  if (envelope === undefined) throw new Error("the response has no content");
  if (envelope.message) console.warn(`Tidemark: ${envelope.message}`);
  return envelope.data;
}

type Query = Record<string, unknown> & { page?: number };
type Page<P extends Gets, L extends keyof Data<P>> = Counts & Record<L, Item<Data<P>, L>[]>;

interface Counts {
  totalCount: number;
  pageSize: number;
  nextCursor?: string | null;
}

/** Returns the query for the first page. Where the service has cursors, no row is missed or repeated. */
function firstPage(path: string, count: number): Query {
  if (QUERIES[path]?.includes("cursor")) return { cursor: "", count };
  return QUERIES[path]?.includes("pageSize") ? { page: 1, pageSize: count } : { page: 1, count };
}

/** Returns the query for the next page, or null after the last one. */
function nextPage(path: string, query: Query, data: Counts, items: readonly unknown[]): Query | null {
  if (QUERIES[path]?.includes("cursor")) return data.nextCursor ? { ...query, cursor: data.nextCursor } : null;
  if (QUERIES[path]?.includes("before")) {
    const last = items.at(-1) as { deliveryId: string }; // new deliveries would shift the pages
    return items.length === data.pageSize ? { ...query, before: last.deliveryId } : null;
  }
  const page = query.page ?? 1;
  return page * data.pageSize < data.totalCount ? { ...query, page: page + 1 } : null;
}
