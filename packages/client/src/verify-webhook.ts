/** Verifies webhooks with `v1` signatures from Standard Webhooks 1.0. */

import type { WebhookEvent } from "./calls.ts"
import { faultOfNames } from "./field-names.ts"
import { parseObject } from "./response.ts"

/** The notification cannot be trusted; `reason` is a code, `message` says why. */
export class WebhookVerificationError extends Error {
  override readonly name = "WebhookVerificationError"
  readonly _tag = "WebhookVerificationError"
  readonly reason:
    | "MissingHeader"
    | "RepeatedHeader"
    | "MalformedTimestamp"
    | "TimestampTooOld"
    | "TimestampTooNew"
    | "NoMatchingSignature"
    /** The body is missing or parsed: something has read it before. */
    | "BodyConsumed"
    /** The body is longer than `maxBodyBytes` of `tenure/node`. */
    | "BodyTooLarge"
    /** The signature is genuine, but the body is not an event. */
    | "InvalidBody"
    /** There is no secret, or one is invalid. */
    | "InvalidSecrets"
    /** `now` or `toleranceSeconds` is not a usable number. */
    | "InvalidOptions"

  constructor(reason: WebhookVerificationError["reason"], message: string) {
    super(message)
    this.reason = reason
  }
}

type HeaderValue = string | ReadonlyArray<string> | undefined

/** A notification as it was received. */
export interface WebhookNotification {
  /** The header fields, with names in any case: a web request's headers, an object or a `Map`. */
  readonly headers:
    | Pick<Headers, "get">
    | Iterable<readonly [string, HeaderValue]>
    | Readonly<Record<string, HeaderValue>>
  /** The raw body. The signature does not match a parsed and reserialized body. */
  readonly body: string | Uint8Array | ArrayBuffer | null
  /** Whether the body is text in base64, as in events of AWS API Gateway. Default: `false`. */
  readonly isBase64Encoded?: boolean | undefined
}

export interface VerifyOptions {
  /** How far the timestamp may be from `now`, in seconds: 0 or more. Default: 300. */
  readonly toleranceSeconds?: number | undefined
  /** The current time in milliseconds since the epoch. Default: the clock. */
  readonly now?: number | undefined
}

const fail = (reason: WebhookVerificationError["reason"], message: string): never => {
  throw new WebhookVerificationError(reason, message)
}

const isIterable = (value: unknown): value is Iterable<unknown> =>
  typeof Object(value)[Symbol.iterator] === "function"

const hasGet = (value: unknown): value is Pick<Headers, "get"> =>
  typeof Object(value)["get"] === "function"

/** Returns a field's values. Which case its name has is up to the host. */
const valuesOf = (headers: unknown, name: string): ReadonlyArray<unknown> => {
  if (!isIterable(headers) && hasGet(headers)) return [headers.get(name)]
  const entries = isIterable(headers) ? headers : Object.entries(Object(headers))
  return Array.from(entries).flatMap((entry) => {
    const [key, value = []] = Array.isArray(entry) ? entry : []
    return typeof key === "string" && key.toLowerCase() === name ? value : []
  })
}

/** Returns a header's value. The header must occur once. */
const single = (headers: WebhookNotification["headers"], name: string): string => {
  const [value, ...others] = valuesOf(headers, name)
  if (others.length > 0) fail("RepeatedHeader", `the ${name} header was sent more than once`)
  return typeof value === "string" ? value : fail("MissingHeader", `the ${name} header is missing`)
}

/** Checks a body, which may come from a parser. */
const rawBody = (body: unknown): string | Uint8Array => {
  if (typeof body === "string" || body instanceof Uint8Array) return body
  if (body instanceof ArrayBuffer) return new Uint8Array(body)
  return fail(
    "BodyConsumed",
    "the body must be the raw text or bytes, as they were before any parser: for example, await request.text(), or request.rawBody where the host keeps it",
  )
}

const bytesOf = (base64: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))

/** Returns a body in base64 as bytes. Any other text is as it was sent. */
const decodeBody = (body: string | Uint8Array): string | Uint8Array => {
  try {
    return typeof body === "string" ? bytesOf(body) : body
  } catch {
    return body
  }
}

/** Decodes a secret: `whsec_`, then 24 to 64 bytes in base64. Returns `undefined` if it is invalid. */
const keyOf = (secret: unknown): Uint8Array<ArrayBuffer> | undefined => {
  const [, base64 = ""] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(String(secret)) ?? []
  if (base64.length % 4 !== 0) return undefined
  const key = bytesOf(base64)
  return key.length >= 24 && key.length <= 64 ? key : undefined
}

const keysOf = (secrets: ReadonlyArray<string>): ReadonlyArray<Uint8Array<ArrayBuffer>> => {
  const keys = Array.isArray(secrets) ? secrets.flatMap((secret) => keyOf(secret) ?? []) : []
  return keys.length > 0 && keys.length === secrets.length
    ? keys
    : fail("InvalidSecrets", "the secrets must be an array of at least one: whsec_ and base64")
}

const checkTimestamp = (timestamp: string, now: number, tolerance: number): void => {
  if (!Number.isFinite(now) || !(Number.isFinite(tolerance) && tolerance >= 0)) {
    fail("InvalidOptions", "now and toleranceSeconds must be numbers, toleranceSeconds at least 0")
  }
  if (!/^[0-9]{1,15}$/.test(timestamp)) {
    fail("MalformedTimestamp", "the webhook-timestamp header is not a number of seconds")
  }
  const age = Math.floor(now / 1000) - Number(timestamp)
  if (age > tolerance) fail("TimestampTooOld", `the notification is ${age} s old`)
  if (-age > tolerance) fail("TimestampTooNew", `the notification is ${-age} s in the future`)
}

const utf8 = new TextEncoder()

const concat = (head: Uint8Array, body: Uint8Array): Uint8Array<ArrayBuffer> => {
  const bytes = new Uint8Array(head.length + body.length)
  bytes.set(head)
  bytes.set(body, head.length)
  return bytes
}

/** Signs bytes: the signature as it is in the header. */
const sign = async (
  key: Uint8Array<ArrayBuffer>,
  signed: Uint8Array<ArrayBuffer>,
): Promise<string> => {
  const algorithm = { name: "HMAC", hash: "SHA-256" }
  const imported = await crypto.subtle.importKey("raw", key, algorithm, false, ["sign"])
  const mac = await crypto.subtle.sign("HMAC", imported, signed)
  return `v1,${btoa(String.fromCharCode(...new Uint8Array(mac)))}`
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

/** Tells whether a body is an event. The signature vouches for its data. */
const isEvent = <Event extends object>(body: object): body is Event =>
  "type" in body && typeof body.type === "string"

/**
 * Verifies that a notification is signed with one of the secrets, and returns its event.
 *
 * @typeParam Own - the data of the events that the host publishes, by type
 * @param secrets - the secret of the webhook, and during a rotation also the other one
 * @returns the event. The promise rejects with a `WebhookVerificationError`, whose `reason` says what is
 *   wrong, also if there is no secret: a variable that is not set never makes a receiver trust a request.
 * @example
 * ```ts
 * import { verifyWebhook } from "tenure/client"
 *
 * declare const request: Request
 * declare const secret: string
 * const event = await verifyWebhook<{ "payment.completed": { readonly amount: number } }>(
 *   { headers: request.headers, body: await request.text() },
 *   [secret],
 * )
 * if (event.type === "membership.extended") console.log(event.data.user_id, event.data.new_end_date)
 * if (event.type === "payment.completed") console.log(event.data.amount)
 * ```
 */
export const verifyWebhook = async <Own extends object = {}>(
  notification: WebhookNotification,
  secrets: ReadonlyArray<string>,
  options: VerifyOptions = {},
): Promise<WebhookEvent<Own>> => {
  // Later, the caller is not on the stack any more.
  const { stack } = new Error()
  try {
    return await verify(notification, secrets, options)
  } catch (error) {
    if (error instanceof Error && stack !== undefined) {
      // In place of the first two lines: of this error, and of this function.
      error.stack = stack.replace(/^Error.*\n.*/, () => String(error))
    }
    throw error
  }
}

const verify = async <Own extends object>(
  { body: given, headers, isBase64Encoded = false }: WebhookNotification,
  secrets: ReadonlyArray<string>,
  options: VerifyOptions,
): Promise<WebhookEvent<Own>> => {
  const fault = faultOfNames(options, ["now", "toleranceSeconds"])
  if (fault !== undefined) fail("InvalidOptions", fault)
  const { now = Date.now(), toleranceSeconds = 300 } = options
  const keys = keysOf(secrets)
  const id = single(headers, "webhook-id")
  const timestamp = single(headers, "webhook-timestamp")
  const signatures = single(headers, "webhook-signature").split(" ")
  checkTimestamp(timestamp, now, toleranceSeconds)
  const raw = rawBody(given)
  const body = isBase64Encoded ? decodeBody(raw) : raw
  const bytes = typeof body === "string" ? utf8.encode(body) : body
  const signed = concat(utf8.encode(`${id}.${timestamp}.`), bytes)
  const expected = await Promise.all(keys.map((key) => sign(key, signed)))
  if (!signatures.some((one) => expected.some((other) => isEqual(one, other)))) {
    fail("NoMatchingSignature", "no signature matches the given secrets")
  }
  const text = typeof body === "string" ? body : new TextDecoder().decode(body)
  const event = { ...parseObject(text), id }
  return isEvent<WebhookEvent<Own>>(event) ? event : fail("InvalidBody", "the body is not an event")
}
