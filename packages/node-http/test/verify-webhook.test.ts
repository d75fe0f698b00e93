/** Verifying webhooks in Node and in frameworks. */

import { IncomingMessage, createServer } from "node:http"
import { Socket } from "node:net"
import { buffer, json, text } from "node:stream/consumers"
import { type WebhookEvent, WebhookVerificationError } from "@tenure/client"
import { secretFromBytes, signMessage } from "@tenure/core/signature"
import { exchange, send } from "@tenure/testing/conformance"
import { describe, expect, it } from "vitest"
import { type VerifyOptions, verifyWebhook } from "../src/verify-webhook.ts"
import { lines, listenDuringTest } from "./support.ts"

const secret = secretFromBytes(new Uint8Array(32).fill(7))
const other = secretFromBytes(new Uint8Array(32).fill(8))
const body = '{"type":"test","data":"ü"}'

const signed = (by = secret, at = Date.now()) => {
  const message = { id: "msg_1", timestamp: Math.floor(at / 1000), body }
  return {
    "webhook-id": message.id,
    "webhook-timestamp": String(message.timestamp),
    "webhook-signature": signMessage(message, by),
  }
}

interface Given {
  readonly headers?: Readonly<Record<string, string>>
  /** What runs before the verification. */
  readonly before?: (request: IncomingMessage) => Promise<unknown>
  readonly options?: VerifyOptions
  /** Sends the request. */
  readonly post?: (url: string) => Promise<unknown>
}

/** Sends a notification to a server that verifies it. Returns the event, or why it was refused. */
const outcomeOf = async ({
  before = async () => {},
  headers = signed(),
  options,
  post = (url) => send(url, { method: "POST", path: "/", headers, body }),
}: Given = {}): Promise<unknown> => {
  let outcome: WebhookEvent | string = "nothing"
  const server = createServer(async (request, response) => {
    await before(request)
    outcome = await verifyWebhook(request, [other, secret], options).catch((error: unknown) =>
      error instanceof WebhookVerificationError ? error.reason : "broken",
    )
    response.end()
  })
  await post(await listenDuringTest(server))
  return outcome
}

const event = { id: "msg_1", type: "test", data: "ü" }

it("fails with the caller's line first in the stack", async () => {
  const error: unknown = await verifyWebhook(new IncomingMessage(new Socket()), [secret], {
    maxBodyBytes: -1,
  }).catch((reason: unknown) => reason)
  const [, first] = (error instanceof Error ? (error.stack ?? "") : "").split("\n    at ")
  expect(first).toContain("verify-webhook.test.ts")
})

it.each([
  ['{"tolerance":300}', "tolerance"],
  ['{"toleranceSeconds":"5 minutes"}', "toleranceSeconds"],
  ['{"maxBodyBytes":0}', "maxBodyBytes"],
])("the options %s are refused by name", async (options, field) => {
  const verified = verifyWebhook(new IncomingMessage(new Socket()), [], JSON.parse(options))
  await expect(verified).rejects.toMatchObject({ _tag: "InvalidInput", field })
})

describe("a notification", () => {
  it("with a valid signature by any of the secrets is returned as an event", async () => {
    expect(await outcomeOf()).toEqual(event)
    expect(await outcomeOf({ headers: signed(other) })).toEqual(event)
  })

  it("is judged by the time that is given", async () => {
    const headers = signed(secret, 4_000_000_000_000)
    expect(await outcomeOf({ headers, options: { now: 4_000_000_100_000 } })).toEqual(event)
  })

  it.each<[string, Given]>([
    ["NoMatchingSignature", { headers: signed(secretFromBytes(new Uint8Array(32))) }],
    ["TimestampTooOld", { headers: signed(secret, Date.now() - 400_000) }],
    ["TimestampTooNew", { headers: signed(secret, Date.now() + 400_000) }],
    ["MissingHeader", { headers: {} }],
    ["MalformedTimestamp", { headers: { ...signed(), "webhook-timestamp": "1614265330junk" } }],
    ["BodyTooLarge", { options: { maxBodyBytes: 10 } }],
  ])("that is not valid is refused with the reason %s", async (reason, given) => {
    expect(await outcomeOf(given)).toBe(reason)
  })

  it("with a repeated header is refused", async () => {
    const fields = Object.entries(signed()).map(([name, value]) => `${name}: ${value}`)
    const length = `Content-Length: ${Buffer.byteLength(body)}`
    const head = ["POST / HTTP/1.1", "Host: a", "Connection: close", ...fields, length]
    const post = (url: string) => exchange(url, lines(...head, "webhook-id: msg_1") + body)
    expect(await outcomeOf({ post })).toBe("RepeatedHeader")
  })
})

describe("secrets that are not set", () => {
  const problems = [undefined, [], [undefined], [""], ["secret"], ["whsec_"], [secret, ""], secret]

  it.each(problems.map((secrets) => ({ secrets })))("are refused: %j", async ({ secrets }) => {
    const request = Object.assign(new IncomingMessage(new Socket()), { body: Buffer.from(body) })
    const verified = verifyWebhook(
      request,
      JSON.parse("0", () => secrets),
    )
    await expect(verified).rejects.toMatchObject({ reason: "InvalidSecrets" })
  })
})

describe("a body parser before the verification", () => {
  it.each<[string, (request: IncomingMessage) => Promise<unknown>, unknown]>([
    ["has read the stream", text, "BodyConsumed"],
    ["has left an object", async (r) => Object.assign(r, { body: await json(r) }), "BodyConsumed"],
    [
      "has kept what was not signed",
      async (r) => Object.assign(r, { rawBody: "{}" }),
      "NoMatchingSignature",
    ],
    [
      "has left an empty object, and the body unread",
      async (r) => Object.assign(r, { body: {} }),
      event,
    ],
  ])("that %s leads to an outcome of its own", async (_name, before, outcome) => {
    expect(await outcomeOf({ before })).toEqual(outcome)
  })

  it.each<[string, (raw: Buffer) => object]>([
    ["bytes as body", (raw) => ({ body: raw })],
    ["text as body", (raw) => ({ body: raw.toString() })],
    ["bytes as rawBody", (raw) => ({ body: JSON.parse(raw.toString()), rawBody: raw })],
    ["a Uint8Array as rawBody", (raw) => ({ body: {}, rawBody: Uint8Array.from(raw) })],
    ["text as rawBody", (raw) => ({ body: "other", rawBody: raw.toString() })],
  ])("is harmless if it has left the raw %s", async (_name, keep) => {
    const before = async (request: IncomingMessage) =>
      Object.assign(request, keep(await buffer(request)))
    expect(await outcomeOf({ before })).toEqual(event)
  })

  it("is told of rawBody", async () => {
    const request = Object.assign(new IncomingMessage(new Socket()), { body: { type: "test" } })
    await expect(verifyWebhook(request, [secret])).rejects.toThrow(/request\.rawBody/)
  })

  it("may belong to an adapter that makes requests of its own, such as one for Lambda functions", async () => {
    const made = Object.assign(new IncomingMessage(new Socket()), { headers: signed(), body })
    expect(await verifyWebhook(made, [secret])).toMatchObject({ id: "msg_1" })
  })

  it("may belong to a framework that wraps the request", async () => {
    const distinct = Object.entries(signed()).map(([name, value]) => [name, [value]])
    const raw = Object.assign(new IncomingMessage(new Socket()), {
      headersDistinct: Object.fromEntries(distinct),
    })
    const kept = { raw, body: JSON.parse(body), rawBody: body }
    expect(await verifyWebhook(kept, [secret])).toMatchObject({ id: "msg_1" })
    // As in such a framework's tests.
    const simulated = Object.assign(new IncomingMessage(new Socket()), { headers: signed() })
    Object.defineProperty(simulated, "headersDistinct", { value: undefined })
    expect(await verifyWebhook({ raw: simulated, body }, [secret])).toMatchObject({ id: "msg_1" })
  })
})
