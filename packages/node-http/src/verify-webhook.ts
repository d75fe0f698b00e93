/** Receives webhooks with node:http, or with a framework on top. */

import type { IncomingMessage } from "node:http"
import { Setting } from "@tenure/core/internal"
import {
  VerificationError,
  type WebhookSecret,
  parseWebhookSecrets,
  verifySignature,
} from "@tenure/core/signature"
import * as Result from "effect/Result"

/** A verified notification. */
export interface Verified {
  /** The event id, identical in every attempt. */
  readonly id: string
  /** The attempt's time, in seconds since the epoch. */
  readonly timestamp: number
  /** The raw body. */
  readonly body: Buffer
}

export const verifyOptions = Setting.object({
  /** How far the timestamp may be from the clock, in seconds. Default: `300`. */
  toleranceSeconds: Setting.withDefault(Setting.integer({ least: 0 }), 300),
  /** The body's maximum length, in bytes. Default: `1048576`. */
  maxBodyBytes: Setting.withDefault(Setting.integer(), 1_048_576),
})

/** The options as a host passes them. */
export interface VerifyOptions extends Setting.InputOf<typeof verifyOptions> {}

/** A request, possibly read by a body parser. */
type Request = IncomingMessage & { readonly body?: unknown }

const failure = (reason: VerificationError["reason"], message: string) =>
  new VerificationError({ reason, message })

const rawBody = async (request: Request, limit: number): Promise<Buffer> => {
  if (request.body instanceof Uint8Array) return Buffer.from(request.body)
  if (request.body !== undefined || request.readableDidRead) {
    throw failure(
      "BodyConsumed",
      "a body parser has already read the body: verify the request first, or use express.raw()",
    )
  }
  const chunks: Array<Buffer> = []
  let length = 0
  for await (const chunk of request) {
    chunks.push(chunk)
    length += chunk.length
    if (length > limit) throw failure("BodyTooLarge", `the body is longer than ${limit} bytes`)
  }
  return Buffer.concat(chunks)
}

/**
 * Reads a request, and verifies the signature with one of the secrets.
 *
 * @param secrets - the webhook's secret, and during a rotation also the other one. Without any, or if
 *   one is invalid, the promise rejects with the reason `InvalidKeys`; nothing is read.
 * @returns the notification. The promise rejects with a `VerificationError` and its `reason`, with the
 *   request's error if it ends early, or with `InvalidInput` if an option is invalid.
 * @example
 * ```ts
 * import { createServer } from "node:http"
 * import { verifyWebhook } from "tenure/node"
 * import { WebhookSecret } from "tenure/signature"
 *
 * const secret = WebhookSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
 * createServer(async (request, response) => {
 *   const genuine = await verifyWebhook(request, [secret]).catch(() => undefined)
 *   response.writeHead(genuine === undefined ? 400 : 204).end()
 * }).listen(4000, "127.0.0.1")
 * ```
 */
export const verifyWebhook = async (
  request: IncomingMessage,
  secrets: ReadonlyArray<WebhookSecret>,
  given: VerifyOptions = {},
): Promise<Verified> => {
  const { maxBodyBytes, toleranceSeconds } = Setting.parse(verifyOptions, given)
  Result.getOrThrow(parseWebhookSecrets(secrets))
  const body = await rawBody(request, maxBodyBytes)
  // Keeps all values of a repeated header: repetition is an error.
  const headers = request.headersDistinct
  const notification = { headers, body, now: Date.now(), toleranceSeconds }
  return { ...Result.getOrThrow(verifySignature(notification, secrets)), body }
}
