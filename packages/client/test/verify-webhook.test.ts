import { WebhookSecret, signMessage } from "@tenure/core/signature"
import { startReceiver } from "@tenure/testing/conformance"
import fc from "fast-check"
import { Webhook as StandardWebhook } from "standardwebhooks"
import { describe, expect, it, onTestFinished } from "vitest"
import {
  type VerifyOptions,
  type WebhookNotification,
  WebhookVerificationError,
  verifyWebhook,
} from "../src/verify-webhook.ts"
import { serving } from "./support.ts"

// The reference implementations' test vector.
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
const id = "msg_p5jXN8AQM9LWM0D4loKWxJek"
const timestamp = 1_614_265_330
const body = '{"test": 2432232314}'
const v1 = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
const now = timestamp * 1000

const signed = (signature: string, seconds: number | string = timestamp) => ({
  "webhook-id": id,
  "webhook-timestamp": String(seconds),
  "webhook-signature": signature,
})

/** Returns why a notification is refused. The vector's body is genuine, but is not an event. */
const verdict = (
  headers: WebhookNotification["headers"],
  options: VerifyOptions = {},
  given: WebhookNotification["body"] = body,
  secrets: ReadonlyArray<string> = [secret],
): Promise<string> =>
  verifyWebhook({ headers, body: given }, secrets, { now, ...options }).then(
    () => "verified",
    (error: unknown) => (error instanceof WebhookVerificationError ? error.reason : String(error)),
  )

const genuine = "InvalidBody"

const event = { type: "payment.completed", timestamp: "2030-01-01T00:00:00.000Z", data: { n: 1 } }

const sign = (text: string | Uint8Array, by = secret): string =>
  signMessage({ id, timestamp, body: text }, WebhookSecret(by))

describe("a signature", () => {
  it("of the test vector matches, in every form of headers and body", async () => {
    const bytes = new TextEncoder().encode(body)
    expect(await verdict(signed(v1))).toBe(genuine)
    expect(await verdict(new Headers(signed(v1)))).toBe(genuine)
    expect(await verdict(signed(v1), {}, bytes)).toBe(genuine)
    expect(await verdict(signed(v1), {}, Buffer.from(body))).toBe(genuine)
    expect(await verdict(signed(v1), {}, await new Response(body).arrayBuffer())).toBe(genuine)
  })

  it.each<[string, (name: string) => string]>([
    ["lower case", (name) => name],
    ["upper case", (name) => name.toUpperCase()],
    ["title case", (name) => name.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase())],
  ])("matches whatever object the host keeps header fields in: names in %s", async (_, spell) => {
    const pairs = Object.entries(signed(v1)).map(([name, value]) => [spell(name), value] as const)
    const fields = Object.fromEntries(pairs)
    const arrays = Object.fromEntries(pairs.map(([name, value]) => [name, [value]]))
    const ofLowerCase = new Headers(fields)
    const forms: ReadonlyArray<WebhookNotification["headers"]> = [
      fields,
      arrays,
      { ...fields, other: undefined, "content-type": ["a", "b"] },
      Object.assign(Object.create(null), fields),
      pairs,
      new Map(pairs),
      new Map(Object.entries(arrays)),
      ofLowerCase,
      { get: (name) => ofLowerCase.get(name) },
    ]
    for (const headers of forms) expect(await verdict(headers)).toBe(genuine)
    const twice = "RepeatedHeader"
    expect(await verdict({ ...signed(v1), [spell("webhook-id")]: [id, id] })).toBe(twice)
    if (spell("a") === "a") return
    expect(await verdict({ ...signed(v1), [spell("webhook-id")]: id })).toBe(twice)
    expect(await verdict([...pairs, ["webhook-id", id]])).toBe(twice)
    expect(await verdict({ ...fields, "webhook-id": undefined })).toBe(genuine)
  })

  it("is over the bytes of a body that the host has encoded in base64", async () => {
    const text = JSON.stringify({ type: "test", data: "ü" })
    const headers = { ...signed(sign(text)), "Webhook-Id": undefined }
    const encoded = Buffer.from(text).toString("base64")
    for (const [given, isBase64Encoded] of [
      [text, false],
      [text, undefined],
      [encoded, true],
      [text, true],
      [new TextEncoder().encode(text), true],
    ] as const) {
      const found = await verifyWebhook({ headers, body: given, isBase64Encoded }, [secret], {
        now,
      })
      expect(found).toMatchObject({ id, type: "test", data: "ü" })
    }
    const verified = verifyWebhook({ headers, body: encoded }, [secret], { now })
    await expect(verified).rejects.toMatchObject({ reason: "NoMatchingSignature" })
  })

  it("matches among others, and by each of the secrets of a rotation", async () => {
    const fresh = `whsec_${btoa("x".repeat(32))}`
    const both = `v1a,xxxx ${sign(body, fresh)} ${v1}`
    for (const secrets of [[secret], [fresh], [fresh, secret]]) {
      expect(await verdict(signed(both), {}, body, secrets)).toBe(genuine)
    }
    const other = `whsec_${btoa("y".repeat(32))}`
    expect(await verdict(signed(both), {}, body, [other])).toBe("NoMatchingSignature")
  })

  it("of the core and of the public library matches, and that of another body does not", async () => {
    const secrets = fc.uint8Array({ minLength: 24, maxLength: 64 })
    await fc.assert(
      fc.asyncProperty(secrets, fc.json(), fc.nat(), async (key, json, at) => {
        const text = JSON.stringify({ ...event, data: JSON.parse(json) })
        const own = `whsec_${Buffer.from(key).toString("base64")}`
        const library = new StandardWebhook(own).sign(id, new Date(now), text)
        expect(sign(text, own)).toBe(library)
        expect(await verdict(signed(library), {}, text, [own])).toBe("verified")
        const position = at % (text.length + 1)
        const changed = `${text.slice(0, position)}x${text.slice(position)}`
        expect(await verdict(signed(library), {}, changed, [own])).toBe("NoMatchingSignature")
      }),
    )
  })
})

describe("a notification is refused", () => {
  const names = ["webhook-id", "webhook-timestamp", "webhook-signature"]

  it.each(names)("without %s, or with two", async (name) => {
    const without = new Headers(signed(v1))
    without.delete(name)
    expect(await verdict(without)).toBe("MissingHeader")
    expect(await verdict({ ...signed(v1), [name]: undefined })).toBe("MissingHeader")
    expect(await verdict({ ...signed(v1), [name]: ["a", "b"] })).toBe("RepeatedHeader")
  })

  it.each(["1614265330junk", "", " 1614265330", "1.6e9", "-1614265330", "0x60381bb2"])(
    "with the timestamp %j",
    async (given) => {
      expect(await verdict(signed(v1, given))).toBe("MalformedTimestamp")
    },
  )

  it.each([
    [{ now: now + 300_999 }, genuine],
    [{ now: now + 301_000 }, "TimestampTooOld"],
    [{ now: now - 300_000 }, genuine],
    [{ now: now - 300_001 }, "TimestampTooNew"],
    [{ toleranceSeconds: 0, now: now + 999 }, genuine],
    [{ toleranceSeconds: 0, now: now + 1000 }, "TimestampTooOld"],
    [{ now: undefined }, "TimestampTooOld"],
    [{ toleranceSeconds: -1 }, "InvalidOptions"],
    [{ toleranceSeconds: NaN }, "InvalidOptions"],
    [{ now: NaN }, "InvalidOptions"],
    [{ now: Infinity }, "InvalidOptions"],
  ])("or not, as time and options say: %j is %s", async (options, reason) => {
    expect(await verdict(signed(v1), options)).toBe(reason)
  })

  it.each([
    [],
    [""],
    ["whsec_"],
    ["whsec_c2hvcnQ="],
    [secret.slice(6)],
    [`${secret}!`],
    [`whsec_${btoa("x".repeat(65))}`],
    [secret, ""],
  ])("with the secrets %j, %j", async (...secrets) => {
    expect(await verdict(signed(v1), {}, body, secrets)).toBe("InvalidSecrets")
  })

  it("if secrets are not set, in JavaScript", async () => {
    for (const secrets of [undefined, null, secret, [undefined], {}]) {
      const call = Reflect.apply(verifyWebhook, undefined, [{ headers: signed(v1), body }, secrets])
      await expect(call).rejects.toMatchObject({ reason: "InvalidSecrets" })
    }
  })

  it.each(["", "null", "[]", '{"data":{}}', "{", '"x"'])("with the body %j", async (text) => {
    expect(await verdict(signed(sign(text)), {}, text)).toBe("InvalidBody")
  })

  it("with a body that a parser has read, and the error says what to pass", async () => {
    for (const parsed of [null, {}, event, 5]) {
      const given = JSON.parse("0", () => parsed)
      expect(await verdict(signed(v1), {}, given)).toBe("BodyConsumed")
    }
    const verified = verifyWebhook({ headers: signed(v1), body: null }, [secret], { now })
    await expect(verified).rejects.toThrow(/request\.text\(\), or request\.rawBody/)
  })

  it("with headers that are none", async () => {
    for (const headers of [undefined, null, {}, { "webhook-id": [] }, "text", [1, null, []]]) {
      const given = JSON.parse("0", () => headers)
      expect(await verdict(given)).toBe("MissingHeader")
    }
  })
})

describe("an event", () => {
  it("has the id of the header, and the fields of the body", async () => {
    const text = JSON.stringify({ ...event, id: "forged" })
    const headers = signed(sign(text))
    const verified = await verifyWebhook<{ "payment.completed": { readonly n: number } }>(
      { headers, body: text },
      [secret],
      { now },
    )
    expect(verified).toEqual({ ...event, id })
    // The event type narrows the data type.
    const n: number = verified.type === "payment.completed" ? verified.data.n : 0
    expect(n).toBe(1)
  })

  it("of Tenure is as its type says", async () => {
    const receiver = await startReceiver()
    onTestFinished(receiver.close)
    await serving(async ({ client, tenure }) => {
      const hook = await tenure.webhooks.create({ projectId: "p1", url: receiver.url })
      const member = { project_id: "p1", user_id: "1001" }
      const extend = "2099-01-01T00:00:00.000Z"
      await client().memberships.extend({ ...member, extend })
      await tenure.memberships.end({ projectId: "p1", userId: "1001" })
      await tenure.webhooks.ping({ projectId: "p1", webhookId: hook.id })
      await receiver.until(3)
      const events = await Promise.all(
        receiver.received.map((sent) => verifyWebhook(sent, [hook.secret])),
      )
      const sequence = expect.any(Number)
      const request_id = expect.stringMatching(/^[0-9a-f-]{36}$/)
      expect(Object.fromEntries(events.map((one) => [one.type, one.data]))).toEqual({
        "membership.extended": { ...member, new_end_date: extend, sequence, request_id },
        "membership.ended": { ...member, sequence, request_id: null },
        "webhook.ping": { project_id: "p1", webhook_id: hook.id },
      })
    })
  })
})
