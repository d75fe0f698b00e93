/** Receives webhooks with node:http, or with a framework on top. */

import type { IncomingMessage } from "node:http"
import { isUint8Array } from "node:util/types"
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

/** What hosts keep of a body: the bytes or the text as `rawBody`, and what their parser returns. */
interface KeptBody {
  readonly rawBody?: unknown
  readonly body?: unknown
}

/** A request of a framework around one of Node, such as Fastify's. */
export interface WrappedRequest extends KeptBody {
  readonly raw: IncomingMessage
}

const isRaw = (body: unknown): body is string | Uint8Array =>
  typeof body === "string" || isUint8Array(body)

/** Whether a parser has left something. Some leave an empty object, and the body unread. */
const isParsed = (body: unknown): boolean =>
  typeof body === "object" ? Object.keys(body ?? {}).length > 0 : body !== undefined

const rawBody = async (
  { body, rawBody: kept }: (IncomingMessage & KeptBody) | WrappedRequest,
  request: IncomingMessage,
  limit: number,
): Promise<string | Uint8Array> => {
  // The signature is over the body, so no host is trusted in this.
  if (isRaw(kept)) return kept
  if (isRaw(body)) return body
  if (isParsed(body) || request.readableDidRead) {
    throw new WebhookVerificationError(
      "BodyConsumed",
      "a body parser has already read the body, and not kept it: verify the request first, use express.raw(), or have the parser keep the bytes as request.rawBody, such as express.json({ verify })",
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
 * `verifyWebhook` of `tenure/client`, for requests of Node. If a parser has read the body, takes
 * `request.rawBody`, or `request.body` if that is the text or the bytes.
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
  request: IncomingMessage | WrappedRequest,
  secrets: ReadonlyArray<string>,
  given: VerifyOptions = {},
): Promise<WebhookEvent<Own>> =>
  fromCallSite(verifyWebhook, () => verifyRequest(request, secrets, given))

const verifyRequest = async <Own extends object>(
  request: IncomingMessage | WrappedRequest,
  secrets: ReadonlyArray<string>,
  given: VerifyOptions,
): Promise<WebhookEvent<Own>> => {
  const { maxBodyBytes, ...options } = Setting.parse(verifyOptions, given)
  const own = "raw" in request ? request.raw : request
  const body = await rawBody(request, own, maxBodyBytes)
  // `headersDistinct` keeps all values of a repeated header: repetition is an error. In requests that test tools
  // and adapters of serverless hosts make, it is missing or empty.
  const headers = { ...own.headers, ...own.headersDistinct }
  return verifyNotification({ headers, body }, secrets, options)
}
