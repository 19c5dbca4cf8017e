import { WebhookRefusedError } from "./errors.js";
import type { components } from "./schema.js";

export type Event = components["schemas"]["Event"];

/**
 * Returns the event of a delivery. An event may be delivered again: store each `eventId` with the work for it.
 *
 * @param body the raw bytes, before any parsing
 * @param headers their names in any case
 * @param secret the subscription's signing secret, as it was shown
 * @throws WebhookRefusedError if the signature is wrong, or the attempt is too old or from the future
 */
export async function verifyWebhook(
  body: Uint8Array<ArrayBuffer>,
  headers: Headers | Record<string, string>,
  secret: string,
  { toleranceS = 300 } = {},
): Promise<Event> {
  const received = new Headers(headers);
  const attemptedAt = received.get("webhook-timestamp") ?? "";
  const head = new TextEncoder().encode(`${received.get("webhook-id") ?? ""}.${attemptedAt}.`);
  const signed = new Uint8Array([...head, ...body]);
  const hmac = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", bytesOf(secret), hmac, false, ["verify"]);
  const given = (received.get("webhook-signature") ?? "").split(" ").filter((each) => each.startsWith("v1,"));
  const checks = given.map((each) => crypto.subtle.verify("HMAC", key, signatureOf(each), signed)); // constant time
  if (!(await Promise.all(checks)).includes(true)) throw new WebhookRefusedError("the signature is wrong");
  if (!(Math.abs(Date.now() / 1000 - Number(attemptedAt)) <= toleranceS))
    throw new WebhookRefusedError("the attempt is too old, or from the future");
  return JSON.parse(new TextDecoder().decode(body)) as Event;
}

function signatureOf(given: string): Uint8Array<ArrayBuffer> {
  try {
    return bytesOf(given.slice("v1,".length));
  } catch {
    return new Uint8Array(); // equals no signature
  }
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
