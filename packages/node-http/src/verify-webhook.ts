/** Receives webhooks with node:http, or with a framework on top. */

import type { IncomingMessage } from "node:http"
import {
  type WebhookEvent,
  WebhookVerificationError,
  verifyWebhook as verifyNotification,
} from "@tenure/client"
import { Setting, fromCallSite, latestInstant } from "@tenure/core/internal"

export const verifyOptions = Setting.object({
  /** How far the timestamp may be from `now`, in seconds. Default: `300`. */
  toleranceSeconds: Setting.withDefault(Setting.integer({ least: 0 }), 300),
  /** The current time in milliseconds since the epoch. Default: the clock. */
  now: Setting.optional(Setting.integer({ least: 0, most: latestInstant })),
  /** The body's maximum length, in bytes. Default: `1048576`. */
  maxBodyBytes: Setting.withDefault(Setting.integer(), 1_048_576),
})

/** The options as a host passes them. */
export interface VerifyOptions extends Setting.InputOf<typeof verifyOptions> {}

/** A request, possibly read by a body parser. */
type Request = IncomingMessage & { readonly body?: unknown }

const rawBody = async (request: Request, limit: number): Promise<Buffer> => {
  if (request.body instanceof Uint8Array) return Buffer.from(request.body)
  if (request.body !== undefined || request.readableDidRead) {
    throw new WebhookVerificationError(
      "BodyConsumed",
      "a body parser has already read the body: verify the request first, or use express.raw()",
    )
  }
  const chunks: Array<Buffer> = []
  let length = 0
  for await (const chunk of request) {
    chunks.push(chunk)
    length += chunk.length
    if (length > limit) {
      const problem = `the body is longer than ${limit} bytes`
      throw new WebhookVerificationError("BodyTooLarge", problem)
    }
  }
  return Buffer.concat(chunks)
}

/**
 * Reads a request, verifies the signature with one of the secrets, and returns its event. The same as
 * `verifyWebhook` of `tenure/client`, for requests of Node.
 *
 * @typeParam Own - the data of the events that the host publishes, by type
 * @param secrets - the webhook's secret, and during a rotation also the other one
 * @returns the event. The promise rejects with a `WebhookVerificationError`, whose `reason` says what is
 *   wrong, with the request's error if it ends early, or with `InvalidInput` if an option is invalid.
 * @example
 * ```ts
 * import { createServer } from "node:http"
 * import { verifyWebhook } from "tenure/node"
 *
 * const secrets = [process.env["WEBHOOK_SECRET"] ?? ""]
 * createServer(async (request, response) => {
 *   const event = await verifyWebhook(request, secrets).catch(() => undefined)
 *   if (event?.type === "membership.expired") console.log(event.data.user_id)
 *   response.writeHead(event === undefined ? 400 : 204).end()
 * }).listen(4000, "127.0.0.1")
 * ```
 */
export const verifyWebhook = <Own extends object = {}>(
  request: IncomingMessage,
  secrets: ReadonlyArray<string>,
  given: VerifyOptions = {},
): Promise<WebhookEvent<Own>> =>
  fromCallSite(verifyWebhook, () => verifyRequest(request, secrets, given))

const verifyRequest = async <Own extends object>(
  request: IncomingMessage,
  secrets: ReadonlyArray<string>,
  given: VerifyOptions,
): Promise<WebhookEvent<Own>> => {
  const { maxBodyBytes, ...options } = Setting.parse(verifyOptions, given)
  const body = await rawBody(request, maxBodyBytes)
  // Keeps all values of a repeated header: repetition is an error.
  return verifyNotification({ headers: request.headersDistinct, body }, secrets, options)
}
