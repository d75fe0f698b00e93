/** Receiving webhooks with node:http, or with anything that builds on it. */

import type { IncomingMessage } from "node:http"
import * as WebhookSignature from "@tenure/core/WebhookSignature"
import * as Result from "effect/Result"

/** A notification that is genuine. */
export interface Verified {
  /** The event's id, the same in every attempt. */
  readonly id: string
  /** When the attempt was made, in seconds since the epoch. */
  readonly timestamp: number
  /** The raw body. */
  readonly body: Buffer
}

/** Options of the verification. */
export interface VerifyOptions {
  /** How far the timestamp may be from the clock, in seconds; 300 by default. */
  readonly toleranceSeconds?: number | undefined
  /** The longest body, in bytes; 1,048,576 by default. */
  readonly maxBodyBytes?: number | undefined
}

/** A request that a body parser may have been at. */
type Request = IncomingMessage & { readonly body?: unknown }

const failure = (reason: WebhookSignature.VerificationError["reason"], message: string) =>
  new WebhookSignature.VerificationError({ reason, message })

const rawBody = async (request: Request, limit: number): Promise<Buffer> => {
  if (request.body instanceof Uint8Array) return Buffer.from(request.body)
  if (request.body !== undefined || request.readableDidRead) {
    throw failure(
      "BodyConsumed",
      "the raw body is gone: a body parser has read it before; verify first, or use express.raw()",
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
 * Reads a request and verifies that it is a notification by one of the secrets.
 *
 * @param secrets - the webhook's secret, and during a rotation the new one too
 * @returns a promise that rejects with a `VerificationError` that names the reason, or with the error
 *   of a request that breaks off
 * @example
 * ```ts
 * import { createServer } from "node:http"
 * import * as WebhookSignature from "@tenure/core/WebhookSignature"
 * import { verifyWebhook } from "@tenure/node-http"
 *
 * const secret = WebhookSignature.Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
 * createServer(async (request, response) => {
 *   const genuine = await verifyWebhook(request, [secret]).catch(() => undefined)
 *   response.writeHead(genuine === undefined ? 400 : 204).end()
 * }).listen(4000, "127.0.0.1")
 * ```
 */
export const verifyWebhook = async (
  request: IncomingMessage,
  secrets: ReadonlyArray<WebhookSignature.Secret>,
  { maxBodyBytes = 1_048_576, toleranceSeconds }: VerifyOptions = {},
): Promise<Verified> => {
  const body = await rawBody(request, maxBodyBytes)
  // Distinct, so that a header that was sent twice shows.
  const headers = request.headersDistinct
  const notification = { headers, body, now: Date.now(), toleranceSeconds }
  const verdict = WebhookSignature.verify(notification, secrets)
  if (Result.isFailure(verdict)) throw verdict.failure
  return { ...verdict.success, body }
}
