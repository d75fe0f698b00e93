/** Reading the body of a node:http request. */

import type { IncomingMessage } from "node:http"
import { type Body, consumed, emptyBody, tooLarge } from "@tenure/core/ApiRequest"

// HTTP/2 has neither field: there the end of the stream tells.
const hasBody = ({ headers, httpVersionMajor }: IncomingMessage): boolean =>
  httpVersionMajor > 1 ||
  headers["transfer-encoding"] !== undefined ||
  Number(headers["content-length"] ?? 0) > 0

/** Tells whether a request announces a body of more than `limit` bytes. */
export const announcesMore = ({ headers }: IncomingMessage, limit: number): boolean =>
  Number(headers["content-length"] ?? 0) > limit

// Chunks are taken apart by node; of other codings nothing is known here.
const unknownCoding: Body = {
  _tag: "Unreadable",
  error: { _tag: "MalformedRequest", message: "The transfer coding is none but chunked." },
}

const hasUnknownCoding = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined && !/^chunked$/i.test(headers["transfer-encoding"])

const utf8 = new TextEncoder()

/** The body that a parser has left, if one has read it. */
const parsedBody = (request: IncomingMessage & { readonly body?: unknown }): Body | undefined => {
  if (!request.readableDidRead) return undefined
  const { body } = request
  if (body === undefined) return consumed
  if (body instanceof Uint8Array) return { _tag: "Bytes", bytes: body }
  if (typeof body === "string") return { _tag: "Bytes", bytes: utf8.encode(body) }
  return { _tag: "Parsed", value: body }
}

/**
 * Reads a request's body and calls `done` with it: not at all if the connection breaks before the
 * end, and with `TooLarge` as soon as there is no doubt of that. What is not read is discarded. What
 * a body parser has read before is taken as that left it.
 */
export const readBody = (
  request: IncomingMessage,
  limit: number,
  done: (body: Body) => void,
): void => {
  if (!hasBody(request)) return done(emptyBody)
  const parsed = parsedBody(request)
  if (parsed !== undefined) return done(parsed)
  if (hasUnknownCoding(request)) {
    request.resume()
    return done(unknownCoding)
  }
  if (announcesMore(request, limit)) {
    request.resume()
    return done(tooLarge)
  }
  const chunks: Array<Buffer> = []
  let length = 0

  const onData = (data: Buffer | string): void => {
    // Text, if another has set an encoding.
    const chunk =
      typeof data === "string" ? Buffer.from(data, request.readableEncoding ?? "utf8") : data
    length += chunk.length
    chunks.push(chunk)
    if (length <= limit) return
    request.off("data", onData).off("end", onEnd).resume()
    done(tooLarge)
  }
  const onEnd = (): void => {
    // A stream of HTTP/2 that is cancelled ends as well.
    if (request.aborted) return
    const [only] = chunks
    const bytes = chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks)
    done({ _tag: "Bytes", bytes })
  }
  // A broken connection ends in an error: there is nobody left to answer.
  request
    .on("data", onData)
    .on("end", onEnd)
    .on("error", () => {})
}
