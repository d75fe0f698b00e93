/** Signs and verifies webhooks. First, Ed25519 public keys anybody can forge signatures for. */

import type { Branded } from "effect/Brand"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { decodeBase64, decodeBase64Unsafe, encodeBase64, hmac } from "../base/bytes.ts"
import {
  type HeaderFields,
  type HostHeaders,
  readHeaderFields,
  singleHeader,
} from "../base/headers.ts"
import { TaggedError } from "../base/tagged-error.ts"
import { brandedWhere, copyOwn } from "../base/values.ts"

// The y coordinates for points whose order divides 8, also as 2^255 - 19 + y (RFC 8032, 5.1.3).
const smallOrder = new Set([
  "00".repeat(32),
  `01${"00".repeat(31)}`,
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  `ec${"ff".repeat(30)}7f`,
  `ed${"ff".repeat(30)}7f`,
  `ee${"ff".repeat(30)}7f`,
])

const hex = (byte: number): string => byte.toString(16).padStart(2, "0")

/**
 * Tells whether a public key, 32 bytes, is a point of small order, for example all zeros. Runtimes
 * accept such keys, and verifiable signatures then need no private key.
 */
const hasSmallOrder = (publicKey: Uint8Array): boolean => {
  // The highest bit is the sign of x.
  const y = Array.from(publicKey, (byte, index) => hex(index === 31 ? byte & 0x7f : byte))
  return smallOrder.has(y.join(""))
}

/** A shared secret: `whsec_` and the key's base64, 24 to 64 bytes. */
export type WebhookSecret = Branded<string, "@tenure/core/WebhookSecret">

/** A signing key: `whsk_` and base64 for 64 bytes, the Ed25519 seed and the public key. */
export type SigningKey = Branded<string, "@tenure/core/WebhookSigningKey">

/** A verification key: `whpk_` and base64 for the Ed25519 public key, 32 bytes. */
export type VerificationKey = Branded<string, "@tenure/core/WebhookVerificationKey">

/** A key's format: a prefix, and base64 for `least` to `most` bytes. */
interface Format {
  readonly prefix: string
  readonly least: number
  readonly most: number
}

const secretFormat: Format = { prefix: "whsec_", least: 24, most: 64 }
const signingKeyFormat: Format = { prefix: "whsk_", least: 64, most: 64 }
const verificationKeyFormat: Format = { prefix: "whpk_", least: 32, most: 32 }

/** Returns a key's bytes, or `undefined` if the text does not match the format. */
const decodeKey = (
  { least, most, prefix }: Format,
  text: unknown,
): Uint8Array<ArrayBuffer> | undefined => {
  if (typeof text !== "string" || !text.startsWith(prefix)) return undefined
  const bytes = decodeBase64(text.slice(prefix.length))
  return bytes !== undefined && bytes.length >= least && bytes.length <= most ? bytes : undefined
}

const decodePublicKey = (text: unknown): Uint8Array<ArrayBuffer> | undefined => {
  const bytes = decodeKey(verificationKeyFormat, text)
  return bytes === undefined || hasSmallOrder(bytes) ? undefined : bytes
}

/** Brands text as a shared secret. Throws a `TypeError` if it is invalid. */
export const WebhookSecret = brandedWhere<string, WebhookSecret>(
  "webhook secret",
  "whsec_ and the base64 of 24 to 64 bytes",
  (text) => decodeKey(secretFormat, text) !== undefined,
)

/** Brands text as a signing key. Throws a `TypeError` if it is invalid. */
export const SigningKey = brandedWhere<string, SigningKey>(
  "signing key",
  "whsk_ and the base64 of 64 bytes",
  (text) => decodeKey(signingKeyFormat, text) !== undefined,
)

/** Brands text as a verification key. Throws a `TypeError` if it is invalid. */
export const VerificationKey = brandedWhere<string, VerificationKey>(
  "verification key",
  "whpk_ and the base64 of an Ed25519 public key, 32 bytes",
  (text) => decodePublicKey(text) !== undefined,
)

/** Makes a secret from 32 random bytes. */
export const secretFromBytes = (bytes: Uint8Array): WebhookSecret =>
  WebhookSecret(`whsec_${encodeBase64(bytes)}`)

/** Creates a signing key from an Ed25519 key pair's seed and public key, 32 bytes each. */
const signingKeyFromBytes = (seed: Uint8Array, publicKey: Uint8Array): SigningKey =>
  SigningKey(`whsk_${encodeBase64(Uint8Array.of(...seed, ...publicKey))}`)

/** Generates a signing key. */
export const generateSigningKey: Effect.Effect<SigningKey> = Effect.gen(function* () {
  const { subtle } = yield* WebCrypto
  return yield* Effect.promise(async () => {
    const pair = await subtle.generateKey("Ed25519", true, ["sign", "verify"])
    if (!("privateKey" in pair)) throw new TypeError("The runtime did not generate a key pair")
    const [pkcs8, raw] = await Promise.all([
      subtle.exportKey("pkcs8", pair.privateKey),
      subtle.exportKey("raw", pair.publicKey),
    ])
    return signingKeyFromBytes(new Uint8Array(pkcs8).subarray(-32), new Uint8Array(raw))
  })
})

/** Returns a signing key's verification key. */
export const verificationKeyOf = (key: SigningKey): VerificationKey =>
  VerificationKey(
    `whpk_${encodeBase64(decodeBase64Unsafe(key.slice("whsk_".length)).subarray(32))}`,
  )

/**
 * The signed content. In Standard Webhooks 1.0, the signed text is `id.timestamp.body`, with the
 * timestamp in seconds; `v1` is HMAC-SHA-256 with a shared secret, `v1a` is Ed25519 with a key pair.
 */
export interface SignedMessage {
  /** The `webhook-id` header. */
  readonly id: string
  /** The `webhook-timestamp` header, in seconds since the epoch. */
  readonly timestamp: number
  /** The body, exactly as it is sent. */
  readonly body: string | Uint8Array
}

const utf8 = new TextEncoder()

const isBody = (body: unknown): body is SignedMessage["body"] =>
  typeof body === "string" || body instanceof Uint8Array

/** Throws a `TypeError` if a message cannot be signed. Types do not protect a caller in JavaScript. */
const checkMessage = ({ body, id, timestamp }: SignedMessage): void => {
  if (typeof id === "string" && Number.isSafeInteger(timestamp) && isBody(body)) return
  throw new TypeError(
    "invalid message: expected an id, a timestamp in whole seconds, and a body of text or bytes",
  )
}

const signedBytes = ({ body, id, timestamp }: SignedMessage): Uint8Array<ArrayBuffer> => {
  if (typeof body === "string") return utf8.encode(`${id}.${timestamp}.${body}`)
  const head = utf8.encode(`${id}.${timestamp}.`)
  const bytes = new Uint8Array(head.length + body.length)
  bytes.set(head)
  bytes.set(body, head.length)
  return bytes
}

const v1 = (key: Uint8Array, signed: Uint8Array): string => encodeBase64(hmac(key, signed))

/**
 * Signs a message with a shared secret.
 *
 * @returns one entry for the `webhook-signature` header, `v1,` and base64. Throws a `TypeError` if the
 *   message or the secret is invalid.
 * @example
 * ```ts
 * import { WebhookSecret, signMessage } from "tenure/signature"
 *
 * const secret = WebhookSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
 * signMessage({ id: "msg_1", timestamp: 1614265330, body: "{}" }, secret) // "v1,…"
 * ```
 */
export const signMessage = (message: SignedMessage, secret: WebhookSecret): string => {
  checkMessage(message)
  const key = decodeKey(secretFormat, secret)
  if (key === undefined)
    throw new TypeError(`invalid webhook secret: expected ${WebhookSecret.expected}`)
  return `v1,${v1(key, signedBytes(message))}`
}

// The bytes before an Ed25519 private key in PKCS #8 (RFC 8410, 7).
const pkcs8Head = [48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32]

/**
 * Signs a message with a signing key.
 *
 * @returns one entry for the `webhook-signature` header, `v1a,` and base64. Dies with a `TypeError` if
 *   the message or the key is invalid.
 */
export const signMessageAsymmetric = Effect.fnUntraced(function* (
  message: SignedMessage,
  key: SigningKey,
) {
  checkMessage(message)
  const { subtle } = yield* WebCrypto
  const seed = decodeBase64Unsafe(SigningKey(key).slice("whsk_".length)).subarray(0, 32)
  const signature = yield* Effect.promise(async () => {
    const pkcs8 = Uint8Array.of(...pkcs8Head, ...seed)
    const imported = await subtle.importKey("pkcs8", pkcs8, "Ed25519", false, ["sign"])
    return subtle.sign("Ed25519", imported, signedBytes(message))
  })
  return `v1a,${encodeBase64(new Uint8Array(signature))}`
})

/**
 * The notification cannot be trusted; `reason` is a code, `message` says why.
 *
 * Invalid arguments also cause this error instead of a throw: a request cannot make a receiver throw,
 * and a missing variable cannot make it trust a request.
 */
export class VerificationError extends TaggedError("VerificationError")<{
  /** Why, as a code. */
  readonly reason:
    | "MissingHeader"
    | "RepeatedHeader"
    | "MalformedTimestamp"
    | "TimestampTooOld"
    | "TimestampTooNew"
    | "NoMatchingSignature"
    /** A body parser has already read the body. */
    | "BodyConsumed"
    | "BodyTooLarge"
    /** There is no key to verify with, or a key is invalid. */
    | "InvalidKeys"
    /** `now` or `toleranceSeconds` is not a usable number. */
    | "InvalidOptions"
    /** `headers` is not an object, or `body` is neither text nor bytes. */
    | "InvalidNotification"
  readonly message: string
}> {}

const failure = (
  reason: VerificationError["reason"],
  message: string,
): Result.Result<never, VerificationError> =>
  Result.fail(new VerificationError({ reason, message }))

/** A notification as it was received. */
export interface VerifiedWebhook {
  /** The request's header fields, with names in any case: an object, a `Map` or `Headers`. */
  readonly headers: HostHeaders
  /** The raw body. The signature does not match a parsed and reserialized body. */
  readonly body: string | Uint8Array
  /** The current time in milliseconds since the epoch. */
  readonly now: number
  /** How many seconds the timestamp may differ from `now`: 0 or more; 300 by default. */
  readonly toleranceSeconds?: number | undefined
}

const required = (
  headers: HeaderFields,
  name: string,
): Result.Result<string, VerificationError> => {
  const field = singleHeader(headers, name)
  switch (field._tag) {
    case "Value":
      return Result.succeed(field.value)
    case "Absent":
      return failure("MissingHeader", `the ${name} header is missing`)
    case "Repeated":
      return failure("RepeatedHeader", `the ${name} header was sent more than once`)
  }
}

interface Signed {
  readonly message: SignedMessage
  /** The signatures in each version, in base64 without the prefix. */
  readonly signatures: (version: "v1" | "v1a") => ReadonlyArray<string>
}

/** Decodes all keys. Fails if there are none, or if one is invalid. */
const decodeKeys = (
  keys: unknown,
  expected: string,
  decode: (key: unknown) => Uint8Array<ArrayBuffer> | undefined,
): Result.Result<ReadonlyArray<Uint8Array<ArrayBuffer>>, VerificationError> => {
  const decoded = Array.isArray(keys) ? Array.from(keys, decode) : []
  const valid = decoded.filter((key) => key !== undefined)
  return valid.length > 0 && valid.length === decoded.length
    ? Result.succeed(valid)
    : failure("InvalidKeys", `the keys must be an array of at least one, each ${expected}`)
}

const decodeSecrets = (secrets: unknown) =>
  decodeKeys(secrets, WebhookSecret.expected, (secret) => decodeKey(secretFormat, secret))

/**
 * Checks secrets before a notification is there: at least one, and each valid.
 *
 * @returns nothing, or a `VerificationError` with the reason `InvalidKeys`
 */
export const parseWebhookSecrets = (
  secrets: ReadonlyArray<WebhookSecret>,
): Result.Result<void, VerificationError> => Result.map(decodeSecrets(secrets), () => undefined)

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null

/** A time, and how far from it a timestamp may be. */
interface Span {
  readonly now: number
  readonly tolerance: number
}

/**
 * Checks the arguments for callers without types. Returns the span of valid timestamps, safe from
 * changes through a prototype.
 */
const checkNotification = (
  notification: VerifiedWebhook,
): Result.Result<Span, VerificationError> => {
  if (!isObject(notification) || !isObject(notification.headers)) {
    return failure("InvalidNotification", "headers must be an object of header fields")
  }
  if (!isBody(notification.body)) {
    return failure("InvalidNotification", "body must be the raw body, as text or as a Uint8Array")
  }
  const { now, toleranceSeconds: tolerance = 300 } = copyOwn(notification)
  if (!Number.isFinite(now)) {
    return failure("InvalidOptions", "now must be the current time in milliseconds")
  }
  return Number.isFinite(tolerance) && tolerance >= 0
    ? Result.succeed({ now, tolerance })
    : failure("InvalidOptions", "toleranceSeconds must be a number of seconds, at least 0")
}

/** Checks everything possible without a key: the headers are present and the timestamp is recent. */
const read = (notification: VerifiedWebhook): Result.Result<Signed, VerificationError> => {
  const span = checkNotification(notification)
  if (Result.isFailure(span)) return Result.fail(span.failure)
  const { now, tolerance } = span.success
  const { body } = notification
  const headers = readHeaderFields(notification.headers)
  const id = required(headers, "webhook-id")
  if (Result.isFailure(id)) return Result.fail(id.failure)
  const time = required(headers, "webhook-timestamp")
  if (Result.isFailure(time)) return Result.fail(time.failure)
  const signature = required(headers, "webhook-signature")
  if (Result.isFailure(signature)) return Result.fail(signature.failure)
  if (!/^[0-9]{1,15}$/.test(time.success)) {
    return failure("MalformedTimestamp", "the webhook-timestamp header is not a number of seconds")
  }
  const timestamp = Number(time.success)
  const age = Math.floor(now / 1000) - timestamp
  if (age > tolerance) return failure("TimestampTooOld", `the message is ${age} s old`)
  if (-age > tolerance) return failure("TimestampTooNew", `the message is ${-age} s in the future`)
  const entries = signature.success.split(" ")
  return Result.succeed({
    message: { id: id.success, timestamp, body },
    signatures: (version) =>
      entries
        .filter((entry) => entry.startsWith(`${version},`))
        .map((entry) => entry.slice(version.length + 1)),
  })
}

/** Compares two texts in constant time. */
const isEqual = (a: string, b: string): boolean => {
  if (a.length !== b.length) return false
  let difference = 0
  for (let index = 0; index < a.length; index++) {
    difference |= a.charCodeAt(index) ^ b.charCodeAt(index)
  }
  return difference === 0
}

const noMatch = failure("NoMatchingSignature", "no signature matches the given keys")

/**
 * Verifies a notification by its `v1` signatures: at least one must match one of the secrets.
 *
 * @param secrets - the webhook's secret, and during a rotation also the new one
 * @returns the message, or a `VerificationError` with the reason
 * @example
 * ```ts
 * import { WebhookSecret, verifySignature } from "tenure/signature"
 *
 * declare const request: { headers: Record<string, string>; rawBody: Uint8Array }
 * const secret = WebhookSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
 * const verdict = verifySignature(
 *   { headers: request.headers, body: request.rawBody, now: Date.now() },
 *   [secret],
 * )
 * ```
 */
export const verifySignature = (
  notification: VerifiedWebhook,
  secrets: ReadonlyArray<WebhookSecret>,
): Result.Result<SignedMessage, VerificationError> => {
  const keys = decodeSecrets(secrets)
  if (Result.isFailure(keys)) return Result.fail(keys.failure)
  return Result.flatMap(read(notification), ({ message, signatures }) => {
    const signed = signedBytes(message)
    const expected = keys.success.map((key) => v1(key, signed))
    const matches = signatures("v1").some((one) => expected.some((other) => isEqual(one, other)))
    return matches ? Result.succeed(message) : noMatch
  })
}

/**
 * Verifies a notification by its `v1a` signatures: at least one must match one of the keys.
 *
 * @returns the message; fails with a `VerificationError` with the reason
 */
export const verifySignatureAsymmetric = Effect.fnUntraced(function* (
  notification: VerifiedWebhook,
  keys: ReadonlyArray<VerificationKey>,
) {
  const publicKeys = yield* Effect.fromResult(
    decodeKeys(keys, VerificationKey.expected, decodePublicKey),
  )
  const { message, signatures } = yield* Effect.fromResult(read(notification))
  const { subtle } = yield* WebCrypto
  const given = signatures("v1a").flatMap((signature) => decodeBase64(signature) ?? [])
  const data = signedBytes(message)
  for (const raw of publicKeys) {
    for (const signature of given) {
      // Bytes outside the curve and invalid signatures match nothing.
      const matches = yield* Effect.tryPromise(async () => {
        const imported = await subtle.importKey("raw", raw, "Ed25519", false, ["verify"])
        return subtle.verify("Ed25519", imported, signature, data)
      }).pipe(Effect.catch(() => Effect.succeed(false)))
      if (matches) return message
    }
  }
  return yield* Effect.fromResult(noMatch)
})
