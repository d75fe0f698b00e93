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
  type VerifiedWebhook,
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

// The test vectors of the reference implementations.
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

const reasonOf = (verdict: Result.Result<unknown, VerificationError>) =>
  Result.isFailure(verdict) ? verdict.failure.reason : "verified"

const verify = (given: VerifiedWebhook["headers"], options: Partial<VerifiedWebhook> = {}) =>
  reasonOf(verifySignature({ headers: given, body: message.body, now, ...options }, [secret]))

const secrets = fc.uint8Array({ minLength: 24, maxLength: 64 }).map(secretFromBytes)
const bodies = fc.oneof(fc.json(), fc.string({ unit: "binary" }))
const ids = fc.uuid()

describe("v1", () => {
  it("signs the test vector", () => {
    expect(signMessage(message, secret)).toBe(v1)
  })

  it("signs bytes like the text that they encode", () => {
    const body = new TextEncoder().encode(message.body)
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
        const timestamp = message.timestamp
        const signature = signMessage({ id, timestamp, body }, key)
        const notification = {
          headers: { ...headers(signature), "webhook-id": id },
          body,
          now,
        }
        expect(reasonOf(verifySignature(notification, [key]))).toBe("verified")
        const position = at % (body.length + 1)
        const changed = `${body.slice(0, position)}x${body.slice(position)}`
        const verdict = verifySignature({ ...notification, body: changed }, [key])
        expect(reasonOf(verdict)).toBe("NoMatchingSignature")
      }),
    )
  })

  it("verifies whatever object the host keeps header fields in", () => {
    const fields = headers(v1)
    const upper = Object.entries(fields).map(
      ([name, value]) => [name.toUpperCase(), value] as const,
    )
    const shouted = Object.fromEntries(upper)
    for (const given of [
      shouted,
      upper,
      new Map(upper),
      new Headers(upper.map(([...pair]) => pair)),
    ]) {
      expect(verify(given)).toBe("verified")
    }
    expect(verify({ ...fields, "Webhook-Id": message.id })).toBe("RepeatedHeader")
    expect(verify({ ...fields, "Webhook-Id": [] })).toBe("verified")
    for (const given of [[1, null, []], new Map([[1, v1]]), "text"]) {
      const anything = JSON.parse("0", () => given)
      expect(verify(anything)).toMatch(/^(MissingHeader|InvalidNotification)$/)
    }
  })

  it("verifies with either secret during a rotation", () => {
    const fresh = secretFromBytes(new Uint8Array(32).fill(7))
    const both = `v1a,xxxx ${signMessage(message, fresh)} ${v1}`
    const notification = { headers: headers(both), body: message.body, now }
    for (const known of [[secret], [fresh], [fresh, secret]]) {
      expect(reasonOf(verifySignature(notification, known))).toBe("verified")
    }
    const other = secretFromBytes(new Uint8Array(32).fill(8))
    expect(reasonOf(verifySignature(notification, [other]))).toBe("NoMatchingSignature")
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

  it("with a timestamp outside the tolerance", () => {
    expect(verify(headers(v1), { now: now + 300_999 })).toBe("verified")
    expect(verify(headers(v1), { now: now + 301_000 })).toBe("TimestampTooOld")
    expect(verify(headers(v1), { now: now - 300_000 })).toBe("verified")
    expect(verify(headers(v1), { now: now - 300_001 })).toBe("TimestampTooNew")
    expect(verify(headers(v1), { now: now + 11_000, toleranceSeconds: 10 })).toBe("TimestampTooOld")
    expect(verify(headers(v1), { toleranceSeconds: 0 })).toBe("verified")
    expect(verify(headers(v1), { now: now + 1000, toleranceSeconds: 0 })).toBe("TimestampTooOld")
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

  it("with random headers, and nothing throws", () => {
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

/** Passes values of any type, as JavaScript without types does. */
const untyped = (value: unknown) => JSON.parse("{}", () => value)

// Items that are arrays stay whole as the arguments of a test.
const whole = (values: ReadonlyArray<unknown>) => values.map((value) => [value])

const keyProblems = [
  undefined,
  null,
  "",
  secret,
  {},
  [],
  [undefined],
  [null],
  [""],
  ["secret"],
  ["whsec_"],
  ["undefined"],
  ["null"],
  [42],
  [`whsec_${btoa("x".repeat(15))}`],
  [secret, undefined],
  [secret, ""],
]

describe("an invalid argument", () => {
  const { expected } = WebhookSecret

  const forged = (text: string) => {
    const key = createHmac("sha256", Buffer.from(text.slice("whsec_".length), "base64"))
    return `v1,${key.update(`${message.id}.${message.timestamp}.${message.body}`).digest("base64")}`
  }

  it.each(whole(keyProblems))("among the secrets fails as InvalidKeys: %j", (keys) => {
    const signatures = ["", String(keys), ...[keys].flat().map(String)].map(forged)
    const notification = { headers: headers(signatures.join(" ")), body: message.body, now }
    expect(reasonOf(verifySignature(notification, untyped(keys)))).toBe("InvalidKeys")
    expect(reasonOf(parseWebhookSecrets(untyped(keys)))).toBe("InvalidKeys")
  })

  it.each(
    whole([undefined, null, Number.NaN, Infinity, -Infinity, "now", "", new Date(now), {}, []]),
  )("for now fails as InvalidOptions: %s", (given) => {
    expect(verify(headers(v1), { now: untyped(given) })).toBe("InvalidOptions")
  })

  it.each(whole([null, Number.NaN, Infinity, -1, "five minutes", "300", "", {}, []]))(
    "for toleranceSeconds fails as InvalidOptions: %j",
    (given) => {
      const late = { now: now + 86_400_000, toleranceSeconds: untyped(given) }
      expect(verify(headers(v1), late)).toBe("InvalidOptions")
    },
  )

  it.each(whole([undefined, null, 42, true, {}, [], [123], new Date(0), Object(message.body)]))(
    "for the body fails as InvalidNotification: %j",
    (body) => {
      expect(verify(headers(v1), { body: untyped(body) })).toBe("InvalidNotification")
    },
  )

  it.each([undefined, null, "webhook-id: msg_1", 42])(
    "for the headers fails as InvalidNotification: %j",
    (given) => {
      expect(verify(untyped(given))).toBe("InvalidNotification")
    },
  )

  it.each([undefined, null, "text", 42])("for the notification fails: %j", (given) => {
    const verdict = verifySignature(untyped(given), [secret])
    expect(reasonOf(verdict)).toBe("InvalidNotification")
  })

  it.each(["", "secret", "whsec_", "undefined", undefined, null, 42, signingKey])(
    "for the secret to sign with throws a TypeError that does not contain it: %j",
    (given) => {
      const sign = () => signMessage(message, untyped(given))
      expect(sign).toThrow(new TypeError(`invalid webhook secret: expected ${expected}`))
    },
  )

  it.each([
    { ...message, body: undefined },
    { ...message, body: {} },
    { ...message, id: undefined },
    { ...message, timestamp: undefined },
    { ...message, timestamp: Number.NaN },
    { ...message, timestamp: "1614265330" },
    { ...message, timestamp: 1.5 },
  ])("in the message to sign throws a TypeError: %j", async (given) => {
    const error = new TypeError(
      "invalid message: expected an id, a timestamp in whole seconds, and a body of text or bytes",
    )
    expect(() => signMessage(untyped(given), secret)).toThrow(error)
    const signed = signMessageAsymmetric(untyped(given), signingKey)
    await expect(Effect.runPromise(signed)).rejects.toThrow(error)
  })

  it("for verifyAsymmetric fails in the same ways", async () => {
    const run = (notification: object, keys: unknown) =>
      Effect.runPromise(
        Effect.result(verifySignatureAsymmetric(untyped(notification), untyped(keys))),
      ).then(reasonOf)
    const valid = { headers: headers(v1a), body: message.body, now }
    for (const keys of [...keyProblems, [secret], [signingKey], ["whpk_"], verificationKey]) {
      expect(await run(valid, keys)).toBe("InvalidKeys")
    }
    expect(await run({ ...valid, now: Number.NaN }, [verificationKey])).toBe("InvalidOptions")
    expect(await run({ ...valid, body: {} }, [verificationKey])).toBe("InvalidNotification")
  })
})

describe("the error of a notification that is refused", () => {
  const given = { headers: headers(v1), body: message.body, now }
  const bare = given.headers

  it.each<readonly [string, object, ReadonlyArray<unknown>]>([
    ["the webhook-id header is missing", { ...given, headers: {} }, [secret]],
    [
      "the webhook-id header was sent more than once",
      { ...given, headers: { ...bare, "webhook-id": ["a", "b"] } },
      [secret],
    ],
    [
      "the webhook-timestamp header is not a number of seconds",
      { ...given, headers: headers(v1, "now") },
      [secret],
    ],
    ["the message is 301 s old", { ...given, now: now + 301_000 }, [secret]],
    ["the message is 301 s in the future", { ...given, now: now - 301_000 }, [secret]],
    ["no signature matches the given keys", { ...given, body: "" }, [secret]],
    ["headers must be an object of header fields", { ...given, headers: null }, [secret]],
    ["body must be the raw body, as text or as a Uint8Array", { ...given, body: {} }, [secret]],
    ["now must be the current time in milliseconds", { ...given, now: NaN }, [secret]],
    [
      "toleranceSeconds must be a number of seconds, at least 0",
      { ...given, toleranceSeconds: -1 },
      [secret],
    ],
    [
      "the keys must be an array of at least one, each whsec_ and the base64 of 24 to 64 bytes",
      given,
      [],
    ],
  ])("says: %s", (text, notification, keys) => {
    expect(Result.getFailure(verifySignature(untyped(notification), untyped(keys)))).toMatchObject({
      value: { _tag: "VerificationError", message: text },
    })
  })
})

describe("only a signature by one of the given keys verifies", () => {
  const anything = fc.anything({ withDate: true, withTypedArray: true, withNullPrototype: true })

  it("whatever the headers, the body, the options and the secrets are", () => {
    const field = fc.oneof(anything, fc.constant(v1), fc.constant(String(message.timestamp)))
    const given = fc.record(
      {
        headers: fc.oneof(
          anything,
          fc.constant(headers(v1)),
          fc.record({
            "webhook-id": field,
            "webhook-timestamp": field,
            "webhook-signature": field,
          }),
        ),
        body: fc.oneof(anything, fc.constant(message.body)),
        now: fc.oneof(anything, fc.constant(now)),
        toleranceSeconds: fc.oneof(anything, fc.constant(300)),
      },
      { requiredKeys: [] },
    )
    const keys = fc.oneof(anything, fc.array(fc.oneof(anything, secrets)))
    fc.assert(
      fc.property(given, keys, (notification, others) => {
        const verdict = verifySignature(untyped(notification), untyped(others))
        expect(reasonOf(verdict)).not.toBe("verified")
      }),
      { numRuns: 1000 },
    )
  })

  it("and the signature of a stranger verifies with none of them", () => {
    fc.assert(
      fc.property(secrets, fc.array(secrets, { minLength: 1 }), (stranger, keys) => {
        fc.pre(!keys.includes(stranger))
        const signature = signMessage(message, stranger)
        const notification = { headers: headers(signature), body: message.body, now }
        expect(reasonOf(verifySignature(notification, keys))).toBe("NoMatchingSignature")
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
    // With s = 0 and R the neutral point, the equation holds for a fraction of all messages.
    const signature = Buffer.alloc(64)
    signature[0] = 1
    const forged = headers(`v1a,${signature.toString("base64")}`)
    for (let n = 0; n < 64; n++) {
      const verdict = await Effect.runPromise(
        Effect.result(
          verifySignatureAsymmetric({ headers: forged, body: String(n), now }, [untyped(key)]),
        ),
      )
      expect(reasonOf(verdict)).toBe("InvalidKeys")
    }
  })
})

describe("a polluted prototype", () => {
  const polluted = (fields: object, test: () => void) => {
    const names = Object.keys(fields)
    Object.assign(Object.prototype, fields)
    try {
      test()
    } finally {
      for (const name of names) Reflect.deleteProperty(Object.prototype, name)
    }
  }

  it("adds no header", () => {
    const reasons: Array<string> = []
    polluted(headers(v1), () => {
      reasons.push(verify({}))
    })
    expect(reasons).toEqual(["MissingHeader"])
  })

  it("does not turn off the protection against replays", () => {
    const reasons: Array<string> = []
    polluted({ toleranceSeconds: 1e12 }, () => {
      reasons.push(verify(headers(v1), { now: now + 86_400_000 }))
    })
    expect(reasons).toEqual(["TimestampTooOld"])
  })

  it("is not asked for the time", () => {
    const reasons: Array<string> = []
    const timeless = { headers: headers(v1), body: message.body }
    polluted({ now }, () => {
      reasons.push(reasonOf(Reflect.apply(verifySignature, undefined, [timeless, [secret]])))
    })
    expect(reasons).toEqual(["InvalidOptions"])
  })
})

describe("v1a", () => {
  const run = Effect.runPromise

  const verdict = (signature: string, body: string, key = verificationKey) =>
    run(
      Effect.result(verifySignatureAsymmetric({ headers: headers(signature), body, now }, [key])),
    ).then(reasonOf)

  it("signs the test vector", async () => {
    expect(await run(signMessageAsymmetric(message, signingKey))).toBe(v1a)
  })

  it("verifies the test vector among other signatures, with one of several keys", async () => {
    const other = VerificationKey(`whpk_${btoa("\x07".repeat(32))}`)
    const notification = { headers: headers(`${v1} v1a,AAAA ${v1a}`), body: message.body, now }
    const verified = verifySignatureAsymmetric(notification, [other, verificationKey])
    expect(await run(verified)).toEqual(message)
  })

  it("refuses another body, another key, and an invalid signature", async () => {
    const other = VerificationKey(`whpk_${btoa("\x07".repeat(32))}`)
    expect(await verdict(v1a, `${message.body} `)).toBe("NoMatchingSignature")
    expect(await verdict(v1a, message.body, other)).toBe("NoMatchingSignature")
    expect(await verdict("v1a,not base64", message.body)).toBe("NoMatchingSignature")
    expect(await verdict(v1, message.body)).toBe("NoMatchingSignature")
  })

  it("signs with a generated key what the key's verification key verifies", async () => {
    const [key, another] = await run(Effect.all([generateSigningKey, generateSigningKey]))
    const signature = await run(signMessageAsymmetric(message, key))
    const publicKey = verificationKeyOf(key)
    const anotherPublicKey = verificationKeyOf(another)
    expect(await verdict(signature, message.body, publicKey)).toBe("verified")
    expect(await verdict(signature, message.body, anotherPublicKey)).toBe("NoMatchingSignature")
    expect(verificationKeyOf(signingKey)).toBe(verificationKey)
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
    const notification = { headers: headers(v1a), body: message.body, now }
    const verified = Effect.provideService(
      verifySignatureAsymmetric(notification, [verificationKey]),
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
})

describe("a secret", () => {
  it("passes the check before a notification is there", () => {
    expect(parseWebhookSecrets([secret])).toEqual(Result.succeed(undefined))
  })

  it.each([
    "",
    "whsec_",
    "whsec_c2hvcnQ=",
    "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw!",
    `whsec_${btoa("x".repeat(65))}`,
  ])("cannot be %j", (text) => {
    expect(WebhookSecret.is(text)).toBe(false)
    expect(() => WebhookSecret(text)).toThrow("invalid webhook secret")
  })
})
