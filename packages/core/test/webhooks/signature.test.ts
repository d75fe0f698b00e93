import { createHmac } from "node:crypto"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import fc from "fast-check"
import { Webhook as StandardWebhook } from "standardwebhooks"
import { Webhook as SvixWebhook } from "svix"
import { describe, expect, it } from "vitest"
import {
  SigningKey,
  type VerificationError,
  VerificationKey,
  WebhookSecret,
  generateSigningKey,
  parseWebhookSecrets,
  secretFromBytes,
  signMessage,
  signMessageAsymmetric,
  verificationKeyOf,
  verifySignature,
  verifySignatureAsymmetric,
} from "../../src/webhooks/signature.ts"

// The reference implementations' test vectors.
const secret = WebhookSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
const message = {
  id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
  timestamp: 1_614_265_330,
  body: '{"test": 2432232314}',
}
const v1 = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
const signingKey = SigningKey(
  "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==",
)
const verificationKey = VerificationKey("whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=")
const v1a =
  "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="

const now = message.timestamp * 1000
const headers = (signature: string, timestamp: string | number = message.timestamp) => ({
  "webhook-id": message.id,
  "webhook-timestamp": String(timestamp),
  "webhook-signature": signature,
})
const notification = { headers: headers(v1), body: message.body, now }

const reasonOf = (verdict: Result.Result<unknown, VerificationError>) =>
  Result.isFailure(verdict) ? verdict.failure.reason : "verified"

/** Passes values with any type, as untyped JavaScript does. */
const untyped = (value: unknown) => JSON.parse("{}", () => value)

/** Verifies the notification after a change. */
const verify = (change: object, keys: unknown = [secret]) =>
  verifySignature(untyped({ ...notification, ...change }), untyped(keys))

const verdictOn = (change: object, keys?: unknown) => reasonOf(verify(change, keys))

const secrets = fc.uint8Array({ minLength: 24, maxLength: 64 }).map(secretFromBytes)
const bodies = fc.oneof(fc.json(), fc.string({ unit: "binary" }))
const ids = fc.uuid()

describe("v1", () => {
  it("signs the test vector, as text and as bytes", () => {
    const body = new TextEncoder().encode(message.body)
    expect(signMessage(message, secret)).toBe(v1)
    expect(signMessage({ ...message, body }, secret)).toBe(v1)
  })

  it("is verified by the public libraries", () => {
    fc.assert(
      fc.property(secrets, ids, fc.json(), (key, id, body) => {
        const timestamp = Math.floor(Date.now() / 1000)
        const signature = signMessage({ id, timestamp, body }, key)
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

  it("verifies what it signs, and refuses a body with one more character", () => {
    fc.assert(
      fc.property(secrets, ids, bodies, fc.nat(), (key, id, body, at) => {
        const { timestamp } = message
        const signature = signMessage({ id, timestamp, body }, key)
        const given = { headers: { ...headers(signature), "webhook-id": id }, body }
        expect(verdictOn(given, [key])).toBe("verified")
        const position = at % (body.length + 1)
        const changed = `${body.slice(0, position)}x${body.slice(position)}`
        expect(verdictOn({ ...given, body: changed }, [key])).toBe("NoMatchingSignature")
      }),
    )
  })

  it("verifies whatever object the host keeps header fields in", () => {
    const upper = Object.entries(notification.headers).map(
      ([name, value]) => [name.toUpperCase(), value] as const,
    )
    for (const given of [
      Object.fromEntries(upper),
      upper,
      new Map(upper),
      new Headers(upper.map(([...pair]) => pair)),
      { ...notification.headers, "Webhook-Id": [] },
    ]) {
      expect(verdictOn({ headers: given })).toBe("verified")
    }
    for (const given of [[1, null, []], new Map([[1, v1]])]) {
      expect(verdictOn({ headers: given })).toBe("MissingHeader")
    }
  })

  it("verifies with either secret during a rotation", () => {
    const fresh = secretFromBytes(new Uint8Array(32).fill(7))
    const both = { headers: headers(`v1a,xxxx ${signMessage(message, fresh)} ${v1}`) }
    for (const known of [[secret], [fresh], [fresh, secret]]) {
      expect(verdictOn(both, known)).toBe("verified")
    }
    const other = secretFromBytes(new Uint8Array(32).fill(8))
    expect(verdictOn(both, [other])).toBe("NoMatchingSignature")
  })

  it("verifies within the tolerance, which may be another than five minutes", () => {
    for (const change of [
      { now: now + 300_999 },
      { now: now - 300_000 },
      { toleranceSeconds: 0 },
      { now: now + 86_400_000, toleranceSeconds: 86_400 },
    ]) {
      expect(verdictOn(change)).toBe("verified")
    }
    expect(verdictOn({ now: now + 11_000, toleranceSeconds: 10 })).toBe("TimestampTooOld")
    expect(verdictOn({ now: now + 1000, toleranceSeconds: 0 })).toBe("TimestampTooOld")
  })
})

describe("a notification is refused", () => {
  /** Returns changes to a property, one for each value. */
  const having = (name: string, ...values: ReadonlyArray<unknown>) =>
    values.map((value) => ({ [name]: value }))
  const field = (name: string, ...values: ReadonlyArray<unknown>) =>
    having(name, ...values).map((one) => ({ headers: { ...notification.headers, ...one } }))
  const late = { now: now + 86_400_000 }

  it.each(Object.entries(notification.headers))("without %s, or with two", (name, value) => {
    for (const change of [{ headers: {} }, ...field(name, undefined)]) {
      expect(verdictOn(change)).toBe("MissingHeader")
    }
    for (const change of [...field(name, [value, value]), ...field(name.toUpperCase(), value)]) {
      expect(verify(change)).toMatchObject({
        failure: {
          reason: "RepeatedHeader",
          message: `the ${name} header was sent more than once`,
        },
      })
    }
  })

  it.each<readonly [VerificationError["reason"], string, ReadonlyArray<object>]>([
    ["MissingHeader", "the webhook-id header is missing", having("headers", {}, new Map())],
    [
      "MalformedTimestamp",
      "the webhook-timestamp header is not a number of seconds",
      [
        ...field("webhook-timestamp", "now", "", "1614265330junk", " 1614265330"),
        ...field("webhook-timestamp", "1.6e9", "-1614265330", "0x60381bb2"),
      ],
    ],
    ["TimestampTooOld", "the message is 301 s old", having("now", now + 301_000, now + 301_999)],
    [
      "TimestampTooNew",
      "the message is 301 s in the future",
      having("now", now - 300_001, now - 301_000),
    ],
    [
      "NoMatchingSignature",
      "no signature matches the given keys",
      [
        { body: "" },
        ...field("webhook-signature", "", "v1", "v1,", v1.slice(0, -1), `${v1}=`, v1.slice(3)),
        ...field("webhook-signature", `V1,${v1.slice(3)}`, `v2,${v1.slice(3)}`),
      ],
    ],
    [
      "InvalidNotification",
      "headers must be an object of header fields",
      having("headers", undefined, null, "webhook-id: msg_1", 42),
    ],
    [
      "InvalidNotification",
      "body must be the raw body, as text or as a Uint8Array",
      having("body", undefined, null, 42, true, {}, [], [123], new Date(0), Object(message.body)),
    ],
    [
      "InvalidOptions",
      "now must be the current time in milliseconds",
      having("now", undefined, null, NaN, Infinity, -Infinity, "now", "", new Date(now), {}, []),
    ],
    [
      "InvalidOptions",
      "toleranceSeconds must be a number of seconds, at least 0",
      having("toleranceSeconds", null, NaN, Infinity, -1, "five minutes", "300", "", {}, []).map(
        (one) => ({ ...late, ...one }),
      ),
    ],
  ])("as %s: %s", (reason, text, changes) => {
    const error = { _tag: "VerificationError", reason, message: text }
    for (const change of changes) expect(verify(change)).toMatchObject({ failure: error })
  })

  it.each([undefined, null, "text", 42])("as InvalidNotification if it is %j", (given) => {
    expect(reasonOf(verifySignature(untyped(given), [secret]))).toBe("InvalidNotification")
  })
})

describe("an invalid argument", () => {
  const keyProblems: ReadonlyArray<unknown> = [
    undefined,
    null,
    "",
    secret,
    {},
    [],
    ...[undefined, null, "", "secret", "whsec_", "undefined", "null", 42].map((one) => [one]),
    [`whsec_${btoa("x".repeat(15))}`],
    [secret, undefined],
    [secret, ""],
  ]

  const forged = (text: string) => {
    const key = createHmac("sha256", Buffer.from(text.slice("whsec_".length), "base64"))
    return `v1,${key.update(`${message.id}.${message.timestamp}.${message.body}`).digest("base64")}`
  }

  it.each(keyProblems.map((keys) => [keys]))("among the secrets is refused: %j", (keys) => {
    const signatures = ["", String(keys), ...[keys].flat().map(String)].map(forged)
    const given = { ...notification, headers: headers(signatures.join(" ")) }
    const text =
      "the keys must be an array of at least one, each whsec_ and the base64 of 24 to 64 bytes"
    const refused = { failure: { reason: "InvalidKeys", message: text } }
    expect(verifySignature(given, untyped(keys))).toMatchObject(refused)
    expect(parseWebhookSecrets(untyped(keys))).toMatchObject(refused)
  })

  it("to verify v1a is refused in the same ways", async () => {
    const run = (change: object, keys: unknown) =>
      Effect.runPromise(
        Effect.result(
          verifySignatureAsymmetric(
            untyped({ ...notification, headers: headers(v1a), ...change }),
            untyped(keys),
          ),
        ),
      ).then(reasonOf)
    for (const keys of [...keyProblems, [secret], [signingKey], ["whpk_"], verificationKey]) {
      expect(await run({}, keys)).toBe("InvalidKeys")
    }
    expect(await run({ now: Number.NaN }, [verificationKey])).toBe("InvalidOptions")
    expect(await run({ body: {} }, [verificationKey])).toBe("InvalidNotification")
  })

  it.each(["", "secret", "whsec_", "undefined", undefined, null, 42, signingKey])(
    "for the secret to sign with throws a TypeError that does not contain it: %j",
    (given) => {
      const text = "invalid webhook secret: expected whsec_ and the base64 of 24 to 64 bytes"
      expect(() => signMessage(message, untyped(given))).toThrow(new TypeError(text))
    },
  )

  it.each([
    { body: undefined },
    { body: {} },
    { id: undefined },
    { timestamp: undefined },
    { timestamp: Number.NaN },
    { timestamp: "1614265330" },
    { timestamp: 1.5 },
  ])("in the message to sign throws a TypeError: %j", async (change) => {
    const given = untyped({ ...message, ...change })
    const error = new TypeError(
      "invalid message: expected an id, a timestamp in whole seconds, and a body of text or bytes",
    )
    expect(() => signMessage(given, secret)).toThrow(error)
    const signed = signMessageAsymmetric(given, signingKey)
    await expect(Effect.runPromise(signed)).rejects.toThrow(error)
  })
})

describe("only a signature by one of the given keys verifies", () => {
  const anything = fc.anything({ withDate: true, withTypedArray: true, withNullPrototype: true })

  it("whatever the headers, the body, the options and the secrets are", () => {
    const field = fc.oneof(anything, fc.constant(v1), fc.constant(String(message.timestamp)))
    const fields = fc.record({
      "webhook-id": field,
      "webhook-timestamp": field,
      "webhook-signature": field,
    })
    const given = fc.record(
      {
        headers: fc.oneof(anything, fc.constant(headers(v1)), fields),
        body: fc.oneof(anything, fc.constant(message.body)),
        now: fc.oneof(anything, fc.constant(now)),
        toleranceSeconds: fc.oneof(anything, fc.constant(300)),
      },
      { requiredKeys: [] },
    )
    const keys = fc.oneof(anything, fc.array(fc.oneof(anything, secrets)))
    fc.assert(
      fc.property(given, keys, (one, others) => {
        const verdict = verifySignature(untyped(one), untyped(others))
        expect(reasonOf(verdict)).not.toBe("verified")
      }),
      { numRuns: 1000 },
    )
  })

  it("and the signature of a stranger verifies with none of them", () => {
    fc.assert(
      fc.property(secrets, fc.array(secrets, { minLength: 1 }), (stranger, keys) => {
        fc.pre(!keys.includes(stranger))
        const signed = { headers: headers(signMessage(message, stranger)) }
        expect(verdictOn(signed, keys)).toBe("NoMatchingSignature")
      }),
    )
  })

  it.each([
    "00".repeat(32),
    `01${"00".repeat(31)}`,
    `01${"00".repeat(30)}80`,
    `ec${"ff".repeat(30)}7f`,
    `ed${"ff".repeat(30)}7f`,
    `ee${"ff".repeat(30)}7f`,
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  ])("so the Ed25519 key %s, with which forgeries verify, is refused", async (hex) => {
    const key = `whpk_${Buffer.from(hex, "hex").toString("base64")}`
    expect(VerificationKey.is(key)).toBe(false)
    // With s = 0 and R the neutral point, the equation holds for some messages.
    const signature = Buffer.alloc(64)
    signature[0] = 1
    const forged = headers(`v1a,${signature.toString("base64")}`)
    for (let n = 0; n < 64; n++) {
      const given = { headers: forged, body: String(n), now }
      const verified = Effect.result(verifySignatureAsymmetric(given, [untyped(key)]))
      expect(reasonOf(await Effect.runPromise(verified))).toBe("InvalidKeys")
    }
  })

  const { now: _, ...timeless } = notification
  it.each<readonly [string, object, object, string]>([
    ["adds no header", headers(v1), { ...notification, headers: {} }, "MissingHeader"],
    [
      "does not turn off the protection against replays",
      { toleranceSeconds: 1e12 },
      { ...notification, now: now + 86_400_000 },
      "TimestampTooOld",
    ],
    ["is not asked for the time", { now }, timeless, "InvalidOptions"],
  ])("and a polluted prototype %s", (_name, fields, given, reason) => {
    Object.assign(Object.prototype, fields)
    const verdict = verifySignature(untyped(given), [secret])
    for (const name of Object.keys(fields)) Reflect.deleteProperty(Object.prototype, name)
    expect(reasonOf(verdict)).toBe(reason)
  })
})

describe("v1a", () => {
  const run = Effect.runPromise
  const other = VerificationKey(`whpk_${btoa("\x07".repeat(32))}`)

  const verdict = (signature: string, body = message.body, key = verificationKey) =>
    run(
      Effect.result(verifySignatureAsymmetric({ headers: headers(signature), body, now }, [key])),
    ).then(reasonOf)

  it("signs the test vector", async () => {
    expect(await run(signMessageAsymmetric(message, signingKey))).toBe(v1a)
    expect(verificationKeyOf(signingKey)).toBe(verificationKey)
  })

  it("verifies the test vector among other signatures, with one of several keys", async () => {
    const given = { ...notification, headers: headers(`${v1} v1a,AAAA ${v1a}`) }
    const verified = verifySignatureAsymmetric(given, [other, verificationKey])
    expect(await run(verified)).toEqual(message)
  })

  it("refuses another body, another key, and an invalid signature", async () => {
    expect(await verdict(v1a, `${message.body} `)).toBe("NoMatchingSignature")
    expect(await verdict(v1a, message.body, other)).toBe("NoMatchingSignature")
    expect(await verdict("v1a,not base64")).toBe("NoMatchingSignature")
    expect(await verdict(v1)).toBe("NoMatchingSignature")
  })

  it("signs with a generated key what the key's verification key verifies", async () => {
    const keys = await run(Effect.all([generateSigningKey, generateSigningKey]))
    const signature = await run(signMessageAsymmetric(message, keys[0]))
    const [own, another] = keys.map(verificationKeyOf)
    expect(await verdict(signature, message.body, own)).toBe("verified")
    expect(await verdict(signature, message.body, another)).toBe("NoMatchingSignature")
  })

  it("generates no key if the runtime does not generate a key pair", async () => {
    const generated = Effect.provideService(
      generateSigningKey,
      WebCrypto,
      untyped({ subtle: { generateKey: () => Promise.resolve({ type: "secret" }) } }),
    )
    const error = new TypeError("The runtime did not generate a key pair")
    await expect(run(generated)).rejects.toThrow(error)
  })

  it("does not verify with a key that the runtime refuses to import", async () => {
    const given = { ...notification, headers: headers(v1a) }
    const verified = Effect.provideService(
      verifySignatureAsymmetric(given, [verificationKey]),
      WebCrypto,
      untyped({ subtle: { importKey: () => Promise.reject(new Error("invalid key")) } }),
    )
    expect(reasonOf(await run(Effect.result(verified)))).toBe("NoMatchingSignature")
  })
})

describe("a key", () => {
  it.each([
    [WebhookSecret, "invalid webhook secret: expected whsec_ and the base64 of 24 to 64 bytes"],
    [SigningKey, "invalid signing key: expected whsk_ and the base64 of 64 bytes"],
    [
      VerificationKey,
      "invalid verification key: expected whpk_ and the base64 of an Ed25519 public key, 32 bytes",
    ],
  ])("of another kind is refused, with a message that says what is valid: %#", (make, text) => {
    for (const given of ["", "whsk_", "whpk_", `whxx_${btoa("x".repeat(32))}`]) {
      expect(() => make(given)).toThrow(new TypeError(text))
    }
  })

  it("is a secret if it has 24 to 64 bytes", () => {
    expect(parseWebhookSecrets([secret])).toEqual(Result.succeed(undefined))
    const ofLength = (length: number) => `whsec_${btoa("x".repeat(length))}`
    const others = ["", "whsec_", "whsec_c2hvcnQ=", secret.slice(6), `${secret}!`]
    expect([ofLength(24), ofLength(64)].map((text) => WebhookSecret.is(text))).toEqual([true, true])
    for (const text of [ofLength(65), ...others]) expect(WebhookSecret.is(text)).toBe(false)
  })
})
