import * as WebhookSignature from "@tenure/core/WebhookSignature"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import fc from "fast-check"
import { Webhook as StandardWebhook } from "standardwebhooks"
import { Webhook as SvixWebhook } from "svix"
import { describe, expect, it } from "vitest"

// The vectors of the specification's reference implementations.
const secret = WebhookSignature.Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
const message = {
  id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
  timestamp: 1_614_265_330,
  body: '{"test": 2432232314}',
}
const v1 = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
const signingKey = WebhookSignature.SigningKey(
  "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==",
)
const verificationKey = WebhookSignature.VerificationKey(
  "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=",
)
const v1a =
  "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="

const now = message.timestamp * 1000
const headers = (signature: string, timestamp: string | number = message.timestamp) => ({
  "webhook-id": message.id,
  "webhook-timestamp": String(timestamp),
  "webhook-signature": signature,
})

const reasonOf = (verdict: Result.Result<unknown, WebhookSignature.VerificationError>) =>
  Result.isFailure(verdict) ? verdict.failure.reason : "verified"

const verify = (
  given: WebhookSignature.Notification["headers"],
  options: Partial<WebhookSignature.Notification> = {},
) =>
  reasonOf(
    WebhookSignature.verify({ headers: given, body: message.body, now, ...options }, [secret]),
  )

const secrets = fc
  .uint8Array({ minLength: 24, maxLength: 64 })
  .map(WebhookSignature.secretFromBytes)
const bodies = fc.oneof(fc.json(), fc.string({ unit: "binary" }))
const ids = fc.uuid()

describe("v1", () => {
  it("signs as the specification's vector says", () => {
    expect(WebhookSignature.sign(message, secret)).toBe(v1)
  })

  it("signs bytes as it signs the text they spell", () => {
    const body = new TextEncoder().encode(message.body)
    expect(WebhookSignature.sign({ ...message, body }, secret)).toBe(v1)
  })

  it("is verified by the public libraries", () => {
    fc.assert(
      fc.property(secrets, ids, fc.json(), (key, id, body) => {
        const timestamp = Math.floor(Date.now() / 1000)
        const signature = WebhookSignature.sign({ id, timestamp, body }, key)
        const given = {
          "webhook-id": id,
          "webhook-timestamp": String(timestamp),
          "webhook-signature": signature,
        }
        expect(new StandardWebhook(key).verify(body, given)).toEqual(JSON.parse(body))
        new SvixWebhook(key).verify(body, given)
        expect(new StandardWebhook(key).sign(id, new Date(timestamp * 1000), body)).toBe(signature)
        expect(new SvixWebhook(key).sign(id, new Date(timestamp * 1000), body)).toBe(signature)
      }),
    )
  })

  it("verifies what it signs, and nothing that differs in a character", () => {
    fc.assert(
      fc.property(secrets, ids, bodies, fc.nat(), (key, id, body, at) => {
        const timestamp = message.timestamp
        const signature = WebhookSignature.sign({ id, timestamp, body }, key)
        const notification = {
          headers: { ...headers(signature), "webhook-id": id },
          body,
          now,
        }
        expect(reasonOf(WebhookSignature.verify(notification, [key]))).toBe("verified")
        const position = at % (body.length + 1)
        const changed = `${body.slice(0, position)}x${body.slice(position)}`
        const verdict = WebhookSignature.verify({ ...notification, body: changed }, [key])
        expect(reasonOf(verdict)).toBe("NoMatchingSignature")
      }),
    )
  })

  it("verifies during a rotation by either secret, and with several signatures", () => {
    const fresh = WebhookSignature.secretFromBytes(new Uint8Array(32).fill(7))
    const both = `v1a,xxxx ${WebhookSignature.sign(message, fresh)} ${v1}`
    const notification = { headers: headers(both), body: message.body, now }
    for (const known of [[secret], [fresh], [fresh, secret]]) {
      expect(reasonOf(WebhookSignature.verify(notification, known))).toBe("verified")
    }
    const other = WebhookSignature.secretFromBytes(new Uint8Array(32).fill(8))
    expect(reasonOf(WebhookSignature.verify(notification, [other]))).toBe("NoMatchingSignature")
    expect(reasonOf(WebhookSignature.verify(notification, []))).toBe("NoMatchingSignature")
  })
})

describe("a notification is refused", () => {
  it.each(["webhook-id", "webhook-timestamp", "webhook-signature"])("without %s", (name) => {
    expect(verify({ ...headers(v1), [name]: undefined })).toBe("MissingHeader")
  })

  it.each(["webhook-id", "webhook-timestamp", "webhook-signature"])("with two of %s", (name) => {
    const given = headers(v1)
    const value = { ...given }[name]
    expect(verify({ ...given, [name]: [String(value), String(value)] })).toBe("RepeatedHeader")
  })

  it.each(["1614265330junk", "", " 1614265330", "1.6e9", "-1614265330", "0x60381bb2"])(
    "with the timestamp %j",
    (timestamp) => {
      expect(verify(headers(v1, timestamp))).toBe("MalformedTimestamp")
    },
  )

  it("when it is more than the tolerance old or early, and not a second sooner", () => {
    expect(verify(headers(v1), { now: now + 300_999 })).toBe("verified")
    expect(verify(headers(v1), { now: now + 301_000 })).toBe("TimestampTooOld")
    expect(verify(headers(v1), { now: now - 300_000 })).toBe("verified")
    expect(verify(headers(v1), { now: now - 300_001 })).toBe("TimestampTooNew")
    expect(verify(headers(v1), { now: now + 11_000, toleranceSeconds: 10 })).toBe("TimestampTooOld")
  })

  it.each([
    "",
    "v1",
    "v1,",
    v1.slice(0, -1),
    `${v1}=`,
    `V1,${v1.slice(3)}`,
    v1.slice(3),
    `v2,${v1.slice(3)}`,
  ])("with the signature %j", (signature) => {
    expect(verify(headers(signature))).toBe("NoMatchingSignature")
  })

  it("whatever the headers are: nothing throws", () => {
    const field = fc.oneof(fc.string({ unit: "binary" }), fc.array(fc.string(), { maxLength: 3 }))
    const any = fc.record(
      { "webhook-id": field, "webhook-timestamp": field, "webhook-signature": field },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(any, (given) => {
        expect(verify(given)).not.toBe("verified")
      }),
    )
  })
})

describe("v1a", () => {
  const run = Effect.runPromise

  const verdict = (signature: string, body: string, key = verificationKey) =>
    run(
      Effect.result(
        WebhookSignature.verifyAsymmetric({ headers: headers(signature), body, now }, [key]),
      ),
    ).then(reasonOf)

  it("signs as the specification's vector says", async () => {
    expect(await run(WebhookSignature.signAsymmetric(message, signingKey))).toBe(v1a)
  })

  it("verifies the vector, among other signatures, and by any of several keys", async () => {
    const other = WebhookSignature.VerificationKey(`whpk_${btoa("\x07".repeat(32))}`)
    const notification = { headers: headers(`${v1} v1a,AAAA ${v1a}`), body: message.body, now }
    const verified = WebhookSignature.verifyAsymmetric(notification, [other, verificationKey])
    expect(await run(verified)).toEqual(message)
  })

  it("refuses another body, another key, and what is no signature", async () => {
    const other = WebhookSignature.VerificationKey(`whpk_${btoa("\x07".repeat(32))}`)
    expect(await verdict(v1a, `${message.body} `)).toBe("NoMatchingSignature")
    expect(await verdict(v1a, message.body, other)).toBe("NoMatchingSignature")
    expect(await verdict("v1a,not base64", message.body)).toBe("NoMatchingSignature")
    expect(await verdict(v1, message.body)).toBe("NoMatchingSignature")
  })
})

describe("secrets", () => {
  it.each([
    "",
    "whsec_",
    "whsec_c2hvcnQ=",
    "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw!",
    `whsec_${btoa("x".repeat(65))}`,
  ])("are not %j", (text) => {
    expect(WebhookSignature.Secret.is(text)).toBe(false)
    expect(() => WebhookSignature.Secret(text)).toThrow("not a valid webhook secret")
  })
})
