import { IncomingMessage, createServer } from "node:http"
import { Socket } from "node:net"
import { buffer, text } from "node:stream/consumers"
import { type WebhookEvent, WebhookVerificationError } from "@tenure/client"
import { secretFromBytes, signMessage } from "@tenure/core/signature"
import { exchange, send } from "@tenure/testing/conformance"
import { describe, expect, it } from "vitest"
import { type VerifyOptions, verifyWebhook } from "../src/verify-webhook.ts"

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

/** Runs a test with a server that verifies requests. Passes it the outcome of each request. */
const verifying = async (
  test: (url: string, outcomes: ReadonlyArray<WebhookEvent | string>) => Promise<unknown>,
  before: (request: IncomingMessage & { body?: unknown }) => Promise<unknown> = async () => {},
  options?: VerifyOptions,
): Promise<void> => {
  const outcomes: Array<WebhookEvent | string> = []
  const server = createServer(async (request, response) => {
    await before(request)
    outcomes.push(
      await verifyWebhook(request, [other, secret], options).catch((error: unknown) =>
        error instanceof WebhookVerificationError ? error.reason : "broken",
      ),
    )
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const port = typeof address === "object" ? address?.port : undefined
  try {
    await test(`http://127.0.0.1:${port}`, outcomes)
  } finally {
    server.close()
    server.closeAllConnections()
  }
}

const post = (url: string, headers: Readonly<Record<string, string>>, content = body) =>
  send(url, { method: "POST", path: "/", headers, body: content })

it("fails with the caller's line first in the stack", async () => {
  const error: unknown = await verifyWebhook(new IncomingMessage(new Socket()), [secret], {
    maxBodyBytes: -1,
  }).catch((reason: unknown) => reason)
  const [, first] = (error instanceof Error ? (error.stack ?? "") : "").split("\n    at ")
  expect(first).toContain("verify-webhook.test.ts")
})

describe("a notification", () => {
  it("with a valid signature is returned as an event", () =>
    verifying(async (url, outcomes) => {
      await post(url, signed())
      await post(url, signed(other))
      const event = { id: "msg_1", type: "test", data: "ü" }
      expect(outcomes).toEqual([event, event])
    }))

  it("is judged by the time that is given", () =>
    verifying(
      async (url, outcomes) => {
        await post(url, signed(secret, 4_000_000_000_000))
        expect(outcomes).toMatchObject([{ id: "msg_1" }])
      },
      undefined,
      { now: 4_000_000_100_000 },
    ))

  it.each([
    ["NoMatchingSignature", signed(secretFromBytes(new Uint8Array(32)))],
    ["TimestampTooOld", signed(secret, Date.now() - 400_000)],
    ["TimestampTooNew", signed(secret, Date.now() + 400_000)],
    ["MissingHeader", {}],
    ["MalformedTimestamp", { ...signed(), "webhook-timestamp": "1614265330junk" }],
  ])("that is not valid is refused with the reason %s", (reason, headers) =>
    verifying(async (url, outcomes) => {
      await post(url, headers)
      expect(outcomes).toEqual([reason])
    }),
  )

  it("with a repeated header is refused", () =>
    verifying(async (url, outcomes) => {
      const headers = Object.entries(signed()).map(([name, value]) => `${name}: ${value}`)
      const head = [
        "POST / HTTP/1.1",
        "Host: a",
        "Connection: close",
        ...headers,
        "webhook-id: msg_1",
        `Content-Length: ${Buffer.byteLength(body)}`,
      ]
      await exchange(url, `${head.join("\r\n")}\r\n\r\n${body}`)
      expect(outcomes).toEqual(["RepeatedHeader"])
    }))

  it("that is too long is refused", () =>
    verifying(
      async (url, outcomes) => {
        await post(url, signed())
        expect(outcomes).toEqual(["BodyTooLarge"])
      },
      undefined,
      { maxBodyBytes: 10 },
    ))
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
  it("causes BodyConsumed if it has read the stream", () =>
    verifying(
      async (url, outcomes) => {
        await post(url, signed())
        expect(outcomes).toEqual(["BodyConsumed"])
      },
      (request) => text(request),
    ))

  it("causes BodyConsumed if it has left an object", () =>
    verifying(
      async (url, outcomes) => {
        await post(url, signed())
        expect(outcomes).toEqual(["BodyConsumed"])
      },
      async (request) => {
        request.body = JSON.parse(await text(request))
      },
    ))

  it.each<[string, (raw: Buffer) => object]>([
    ["bytes as body", (raw) => ({ body: raw })],
    ["text as body", (raw) => ({ body: raw.toString() })],
    ["bytes as rawBody", (raw) => ({ body: JSON.parse(raw.toString()), rawBody: raw })],
    ["a Uint8Array as rawBody", (raw) => ({ body: {}, rawBody: Uint8Array.from(raw) })],
    ["text as rawBody", (raw) => ({ body: "other", rawBody: raw.toString() })],
  ])("is harmless if it has left the raw %s", (_name, keep) =>
    verifying(
      async (url, outcomes) => {
        await post(url, signed())
        expect(outcomes).toMatchObject([{ id: "msg_1" }])
      },
      async (request) => Object.assign(request, keep(await buffer(request))),
    ),
  )

  it("is harmless if it has left an empty object, and the body unread", () =>
    verifying(
      async (url, outcomes) => {
        await post(url, signed())
        expect(outcomes).toMatchObject([{ id: "msg_1" }])
      },
      async (request) => Object.assign(request, { body: {} }),
    ))

  it("is not trusted if what it has kept is not what is signed", () =>
    verifying(
      async (url, outcomes) => {
        await post(url, signed())
        expect(outcomes).toEqual(["NoMatchingSignature"])
      },
      async (request) => Object.assign(request, { rawBody: "{}" }),
    ))

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
    // As in the tests of such a framework.
    const simulated = Object.assign(new IncomingMessage(new Socket()), { headers: signed() })
    Object.defineProperty(simulated, "headersDistinct", { value: undefined })
    expect(await verifyWebhook({ raw: simulated, body }, [secret])).toMatchObject({ id: "msg_1" })
  })
})
