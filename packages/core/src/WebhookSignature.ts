/**
 * Signatures of Standard Webhooks 1.0
 * (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md):
 * `v1`, HMAC-SHA-256 under a shared secret, and `v1a`, Ed25519 under a key pair.
 *
 * What is signed is `id.timestamp.body`, where the timestamp is in seconds.
 */

import type { Branded } from "effect/Brand"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { type HeaderFields, single } from "./HeaderFields.ts"
import * as Base64 from "./internal/base64.ts"
import { refined } from "./internal/refined.ts"
import { hmac } from "./internal/sha256.ts"

/** A shared secret: `whsec_` and the base64 of 24 to 64 bytes, which are the key. */
export type Secret = Branded<string, "@tenure/core/WebhookSecret">

/** A signing key: `whsk_` and the base64 of 64 bytes, the Ed25519 seed and the public key. */
export type SigningKey = Branded<string, "@tenure/core/WebhookSigningKey">

/** A verification key: `whpk_` and the base64 of the 32 bytes of the Ed25519 public key. */
export type VerificationKey = Branded<string, "@tenure/core/WebhookVerificationKey">

const keyBytes = (prefix: string, text: string): Uint8Array<ArrayBuffer> | undefined =>
  text.startsWith(prefix) ? Base64.decode(text.slice(prefix.length)) : undefined

const hasBytes = (prefix: string, text: string, least: number, most: number): boolean => {
  const size = keyBytes(prefix, text)?.length ?? -1
  return size >= least && size <= most
}

/** Brands a text as a shared secret. Throws where it is none. */
export const Secret = refined<string, Secret>("webhook secret", (text) =>
  hasBytes("whsec_", text, 24, 64),
)

/** Brands a text as a signing key. Throws where it is none. */
export const SigningKey = refined<string, SigningKey>("signing key", (text) =>
  hasBytes("whsk_", text, 64, 64),
)

/** Brands a text as a verification key. Throws where it is none. */
export const VerificationKey = refined<string, VerificationKey>("verification key", (text) =>
  hasBytes("whpk_", text, 32, 32),
)

/** Makes a secret from 32 random bytes. */
export const secretFromBytes = (bytes: Uint8Array): Secret =>
  Secret(`whsec_${Base64.encode(bytes)}`)

/** Makes a signing key from the seed and the public key of an Ed25519 key pair, 32 bytes each. */
const signingKeyFromBytes = (seed: Uint8Array, publicKey: Uint8Array): SigningKey =>
  SigningKey(`whsk_${Base64.encode(Uint8Array.of(...seed, ...publicKey))}`)

/** Makes a signing key at random. */
export const generateSigningKey: Effect.Effect<SigningKey> = Effect.gen(function* () {
  const { subtle } = yield* WebCrypto
  return yield* Effect.promise(async () => {
    const pair = await subtle.generateKey("Ed25519", true, ["sign", "verify"])
    if (!("privateKey" in pair)) throw new TypeError("Ed25519 has key pairs")
    const [pkcs8, raw] = await Promise.all([
      subtle.exportKey("pkcs8", pair.privateKey),
      subtle.exportKey("raw", pair.publicKey),
    ])
    return signingKeyFromBytes(new Uint8Array(pkcs8).subarray(-32), new Uint8Array(raw))
  })
})

/** The key that verifies what a signing key has signed. */
export const verificationKeyOf = (key: SigningKey): VerificationKey =>
  VerificationKey(
    `whpk_${Base64.encode(Base64.decodeUnsafe(key.slice("whsk_".length)).subarray(32))}`,
  )

/** What is signed. */
export interface Message {
  /** The `webhook-id` header. */
  readonly id: string
  /** The `webhook-timestamp` header, in seconds since the epoch. */
  readonly timestamp: number
  /** The body, byte for byte as it is sent. */
  readonly body: string | Uint8Array
}

const utf8 = new TextEncoder()

const signedBytes = ({ body, id, timestamp }: Message): Uint8Array<ArrayBuffer> => {
  if (typeof body === "string") return utf8.encode(`${id}.${timestamp}.${body}`)
  const head = utf8.encode(`${id}.${timestamp}.`)
  const bytes = new Uint8Array(head.length + body.length)
  bytes.set(head)
  bytes.set(body, head.length)
  return bytes
}

/**
 * Signs a message under a shared secret.
 *
 * @returns one entry of the `webhook-signature` header, `v1,` and base64
 * @example
 * ```ts
 * import * as WebhookSignature from "@tenure/core/WebhookSignature"
 *
 * const secret = WebhookSignature.Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
 * WebhookSignature.sign({ id: "msg_1", timestamp: 1614265330, body: "{}" }, secret) // "v1,…"
 * ```
 */
export const sign = (message: Message, secret: Secret): string =>
  `v1,${Base64.encode(hmac(Base64.decodeUnsafe(secret.slice("whsec_".length)), signedBytes(message)))}`

// What precedes the 32 bytes of an Ed25519 private key in PKCS #8 (RFC 8410, 7).
const pkcs8Head = [48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32]

/**
 * Signs a message with a signing key.
 *
 * @returns one entry of the `webhook-signature` header, `v1a,` and base64
 */
export const signAsymmetric = Effect.fnUntraced(function* (message: Message, key: SigningKey) {
  const { subtle } = yield* WebCrypto
  const seed = Base64.decodeUnsafe(key.slice("whsk_".length)).subarray(0, 32)
  const signature = yield* Effect.promise(async () => {
    const pkcs8 = Uint8Array.of(...pkcs8Head, ...seed)
    const imported = await subtle.importKey("pkcs8", pkcs8, "Ed25519", false, ["sign"])
    return subtle.sign("Ed25519", imported, signedBytes(message))
  })
  return `v1a,${Base64.encode(new Uint8Array(signature))}`
})

/** Why a notification is not to be trusted. */
export class VerificationError extends Data.TaggedError("VerificationError")<{
  readonly reason:
    | "MissingHeader"
    | "RepeatedHeader"
    | "MalformedTimestamp"
    | "TimestampTooOld"
    | "TimestampTooNew"
    | "NoMatchingSignature"
    /** A body parser has read the body before. */
    | "BodyConsumed"
    | "BodyTooLarge"
  readonly message: string
}> {}

const failure = (
  reason: VerificationError["reason"],
  message: string,
): Result.Result<never, VerificationError> =>
  Result.fail(new VerificationError({ reason, message }))

/** A notification as it arrived. */
export interface Notification {
  /** The header fields of the request, with names in lower case. */
  readonly headers: HeaderFields
  /** The raw body. A body that was parsed and printed again has another signature. */
  readonly body: string | Uint8Array
  /** The current time in milliseconds since the epoch. */
  readonly now: number
  /** How far the timestamp may be from `now`, in seconds; 300 by default. */
  readonly toleranceSeconds?: number | undefined
}

const required = (
  headers: HeaderFields,
  name: string,
): Result.Result<string, VerificationError> => {
  const field = single(headers, name)
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
  readonly message: Message
  /** The signatures of each version, base64 without the prefix. */
  readonly signatures: (version: "v1" | "v1a") => ReadonlyArray<string>
}

/** All that can be judged without a key: the headers are there and the timestamp is fresh. */
const read = (notification: Notification): Result.Result<Signed, VerificationError> => {
  const { headers, now, toleranceSeconds = 300 } = notification
  const id = required(headers, "webhook-id")
  if (Result.isFailure(id)) return Result.fail(id.failure)
  const time = required(headers, "webhook-timestamp")
  if (Result.isFailure(time)) return Result.fail(time.failure)
  const signature = required(headers, "webhook-signature")
  if (Result.isFailure(signature)) return Result.fail(signature.failure)
  if (!/^[0-9]{1,15}$/.test(time.success)) {
    return failure("MalformedTimestamp", "the webhook-timestamp header is no number of seconds")
  }
  const timestamp = Number(time.success)
  const age = Math.floor(now / 1000) - timestamp
  if (age > toleranceSeconds) return failure("TimestampTooOld", `the message is ${age} s old`)
  if (-age > toleranceSeconds) return failure("TimestampTooNew", `the message is ${-age} s early`)
  const entries = signature.success.split(" ")
  return Result.succeed({
    message: { id: id.success, timestamp, body: notification.body },
    signatures: (version) =>
      entries
        .filter((entry) => entry.startsWith(`${version},`))
        .map((entry) => entry.slice(version.length + 1)),
  })
}

/** Compares two texts without telling by the time taken where they differ. */
const isEqual = (a: string, b: string): boolean => {
  if (a.length !== b.length) return false
  let difference = 0
  for (let index = 0; index < a.length; index++) {
    difference |= a.charCodeAt(index) ^ b.charCodeAt(index)
  }
  return difference === 0
}

const noMatch = failure("NoMatchingSignature", "no signature is by the given keys")

/**
 * Verifies a notification by its `v1` signatures: at least one has to be by one of the secrets.
 *
 * @param secrets - the webhook's secret, and during a rotation the new one too
 * @returns the message, or a `VerificationError` that names the reason
 * @example
 * ```ts
 * import * as WebhookSignature from "@tenure/core/WebhookSignature"
 *
 * declare const request: { headers: Record<string, string>; rawBody: Uint8Array }
 * const secret = WebhookSignature.Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
 * const verdict = WebhookSignature.verify(
 *   { headers: request.headers, body: request.rawBody, now: Date.now() },
 *   [secret],
 * )
 * ```
 */
export const verify = (
  notification: Notification,
  secrets: ReadonlyArray<Secret>,
): Result.Result<Message, VerificationError> =>
  Result.flatMap(read(notification), ({ message, signatures }) => {
    const given = signatures("v1")
    const expected = secrets.map((secret) => sign(message, secret).slice("v1,".length))
    const matches = given.filter((one) => expected.some((other) => isEqual(one, other)))
    return matches.length > 0 ? Result.succeed(message) : noMatch
  })

/**
 * Verifies a notification by its `v1a` signatures: at least one has to be by one of the keys.
 *
 * Fails with a `VerificationError` that names the reason.
 */
export const verifyAsymmetric = Effect.fnUntraced(function* (
  notification: Notification,
  keys: ReadonlyArray<VerificationKey>,
) {
  const { message, signatures } = yield* Effect.fromResult(read(notification))
  const { subtle } = yield* WebCrypto
  const given = signatures("v1a").flatMap((signature) => Base64.decode(signature) ?? [])
  const data = signedBytes(message)
  for (const key of keys) {
    const raw = Base64.decodeUnsafe(key.slice("whpk_".length))
    for (const signature of given) {
      // Bytes that are no key, or no signature, match nothing.
      const matches = yield* Effect.tryPromise(async () => {
        const imported = await subtle.importKey("raw", raw, "Ed25519", false, ["verify"])
        return subtle.verify("Ed25519", imported, signature, data)
      }).pipe(Effect.catch(() => Effect.succeed(false)))
      if (matches) return message
    }
  }
  return yield* Effect.fromResult(noMatch)
})
