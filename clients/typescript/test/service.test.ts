// Against the running service of the environment: TIDEMARK_BASE_URL, TIDEMARK_KEY, and TIDEMARK_UNSTEADY_URL, an address
// where each request first fails with 503.
import assert from "node:assert/strict";
import { createHmac, randomUUID } from "node:crypto";
import { test } from "node:test";

import { connect, dataOf, JobFailedError, ProblemError, verifyWebhook, WebhookRefusedError } from "../src/index.js";

const { TIDEMARK_BASE_URL: baseUrl = "", TIDEMARK_KEY: key = "", TIDEMARK_UNSTEADY_URL: unsteadyUrl = "" } = process.env;
const { api, wait, pages } = connect({ key, baseUrl });
const ROWS = Array.from({ length: 5 }, (_, day) => ({
  date: `2026-06-0${day + 1}`,
  description: `COFFEE ${day}`,
  amount: -4.5,
}));

function newCustomer(): Promise<{ customerId: string }> {
  return dataOf(api.POST("/v1/customer", { body: { abn: "51824753556", reference: randomUUID() } }));
}

function submission() {
  return { bsb: "062000", accountNumber: "12345678", transactions: ROWS };
}

test("a submission is waited for, and its rows are listed in pages", async () => {
  const { customerId } = await newCustomer();
  const params = { path: { customerId } };
  const { jobId } = await dataOf(api.POST("/v1/customer/{customerId}/transactions", { params, body: submission() }));
  const job = await wait(jobId);
  assert.equal(job.status, "Completed");
  const amounts: number[] = [];
  const path = "/v1/customer/{customerId}/transactions";
  for await (const row of pages(path, "transactions", { params }, 2)) amounts.push(row.amount);
  assert.deepEqual(amounts, ROWS.map((row) => row.amount));
  const seen = new Set<string>();
  for await (const row of pages("/v1/transactions", "transactions", undefined, 2)) seen.add(row.transactionId);
  assert.ok(seen.size >= ROWS.length);
});

test("a request that failed is repeated under the same key, so that it makes one job", async () => {
  const { customerId } = await newCustomer();
  const params = { path: { customerId } };
  const unsteady = connect({ key, baseUrl: unsteadyUrl });
  const accepted = await dataOf(
    unsteady.api.POST("/v1/customer/{customerId}/transactions", { params, body: submission() }),
  );
  const jobs: string[] = [];
  for await (const job of pages("/v1/jobs", "jobs", { params: { query: { customerId } } }, 1)) jobs.push(job.jobId);
  assert.deepEqual(jobs, [accepted.jobId]);
});

test("a refusal is an error with its code and faults", async () => {
  const refused = api.POST("/v1/customer", { body: { abn: "1" } });
  await assert.rejects(refused, (error) => {
    assert.ok(error instanceof ProblemError);
    assert.equal(error.status, 400);
    assert.equal(error.errors[0]?.pointer, "/abn");
    return error.code !== "";
  });
});

test("a job that failed, and one that doesn't end, reject", async () => {
  const job = { jobId: "j", status: "Failed", error: { code: "Some.Code", message: "No." } };
  const responses = [job, { ...job, status: "Running" }].map((data) => Response.json({ data, message: null }));
  const scripted = connect({ key, baseUrl, fetch: async () => responses.shift() ?? Response.error() });
  await assert.rejects(scripted.wait("j"), JobFailedError);
  await assert.rejects(scripted.wait("j", { timeoutMs: 0 }), /has not ended/);
});

test("a request that is not repeatable is not repeated", async () => {
  let calls = 0;
  const fetch = async () => (calls++, Response.json({ code: "Service.Busy" }, { status: 503 }));
  const scripted = connect({ key, baseUrl, fetch });
  const params = { path: { slug: "a" } };
  await assert.rejects(scripted.api.POST("/v1/decision-policies/{slug}/archive", { params }), ProblemError);
  assert.equal(calls, 1);
});

test("a webhook is verified, and a forged one refused", async () => {
  const secret = Buffer.from("a secret of 32 bytes............").toString("base64");
  const body = new TextEncoder().encode('{"eventType": "job.completed"}');
  const signed = (timestamp: number) => {
    const mac = createHmac("sha256", Buffer.from(secret, "base64")).update(`7.${timestamp}.`).update(body);
    const headers = { "Webhook-Id": "7", "Webhook-Timestamp": `${timestamp}` };
    return { ...headers, "Webhook-Signature": `v1,${mac.digest("base64")}` };
  };
  const now = Math.floor(Date.now() / 1000);
  assert.equal((await verifyWebhook(body, signed(now), secret)).eventType, "job.completed");
  const forged = { ...signed(now), "Webhook-Id": "8" };
  await assert.rejects(verifyWebhook(body, forged, secret), WebhookRefusedError);
  await assert.rejects(verifyWebhook(body, signed(now - 400), secret), WebhookRefusedError);
  await assert.rejects(verifyWebhook(body, {}, secret), WebhookRefusedError);
});
