/** Reads the body of a request. */

import {
  type ArrivedBody,
  type Body,
  brokenOff,
  consumed,
  emptyBody,
  hasUnknownCoding,
  tooLarge,
  unknownCoding,
} from "@tenure/core/ApiRequest"
import type { BodyLimit } from "@tenure/core/BodyLimit"
import { faultOf, takeFault } from "./bodyFaults.ts"
import { takeExpectation } from "./expectations.ts"
import type { NodeRequest } from "./messages.ts"

// A request over HTTP/2 needs neither field: the end of its stream is the end of the body.
const hasBody = ({ headers, httpVersionMajor }: NodeRequest): boolean =>
  httpVersionMajor > 1 ||
  headers["transfer-encoding"] !== undefined ||
  Number(headers["content-length"] ?? 0) > 0

/** Whether a request announces a body of more than `limit` bytes. */
const announcesMore = ({ headers }: Pick<NodeRequest, "headers">, limit: number): boolean =>
  Number(headers["content-length"] ?? 0) > limit

const utf8 = new TextEncoder()

/** Why a body is not read, if it is not. */
const refusedBody = (request: NodeRequest, limit: number): Body | undefined => {
  if (hasUnknownCoding(request.headers)) return unknownCoding
  return announcesMore(request, limit) ? tooLarge : undefined
}

/** The body that a parser has left on the request. */
const parsedBody = ({ body }: NodeRequest & { readonly body?: unknown }): Body => {
  if (body === undefined) return consumed
  if (body instanceof Uint8Array) return { _tag: "Bytes", bytes: body }
  if (typeof body === "string") return { _tag: "Bytes", bytes: utf8.encode(body) }
  return { _tag: "Parsed", value: body }
}

/** The body, if somebody else has read it. */
const readBefore = (request: NodeRequest, limit: number): Body | undefined =>
  request.readableDidRead ? (refusedBody(request, limit) ?? parsedBody(request)) : undefined

const concat = (chunks: ReadonlyArray<Buffer>): Buffer => {
  const [only] = chunks
  return chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks)
}

/** Reads a stream up to its end or the limit. */
const readStream = (
  request: NodeRequest,
  limit: number,
  done: (body: ArrivedBody) => void,
): void => {
  const chunks: Array<Buffer> = []
  let length = 0

  const onData = (data: Buffer | string): void => {
    // The host may have set an encoding, which turns chunks into strings.
    const chunk =
      typeof data === "string" ? Buffer.from(data, request.readableEncoding ?? "utf8") : data
    length += chunk.length
    chunks.push(chunk)
    if (length <= limit) return
    request.off("data", onData).off("end", onEnd).resume()
    done(tooLarge)
  }
  const onEnd = (): void => {
    // A cancelled stream of HTTP/2 ends, too.
    if (!request.aborted) done({ _tag: "Bytes", bytes: concat(chunks) })
  }
  request
    .on("data", onData)
    .on("end", onEnd)
    // The connection is gone, so there is no response to send.
    .on("error", () => {})
}

/**
 * Makes a body that is read once the core asks for it.
 *
 * @param sendContinue - tells the client to send the body, if it waits
 */
const deferred = (
  request: NodeRequest,
  limit: number,
  sendContinue: (() => void) | undefined,
): Body => {
  // A fault before the core reads the body is kept, and stands in place of the body.
  takeFault(request, () => {})
  return {
    _tag: "Deferred",
    read: () =>
      new Promise((resolve) => {
        const fault = faultOf(request)
        if (fault !== undefined) return resolve(fault)
        // The client may have gone meanwhile.
        if (request.destroyed) return resolve(brokenOff)
        takeFault(request, resolve)
        sendContinue?.()
        readStream(request, limit, resolve)
        request.once("close", () => resolve(brokenOff))
      }),
  }
}

/** Makes a function that passes on only the first body. */
const onlyFirst = (done: (body: Body) => void): ((body: Body) => void) => {
  let isDone = false
  return (body) => {
    if (isDone) return
    isDone = true
    done(body)
  }
}

/**
 * Reads the body of a request, and calls `done` with it. If the client waits for 100 Continue, or the
 * body may be long, leaves it to the core to read the body. Calls `done` with `TooLarge` as soon as the
 * body exceeds the limit, and not at all if the connection breaks before the end of the body. Discards
 * what it does not read. If a body parser has read the body, uses the parser's result.
 */
export const readBody = (
  request: NodeRequest,
  { bytes: limit, isDeferred }: BodyLimit,
  done: (body: Body) => void,
): void => {
  const known = hasBody(request) ? (faultOf(request) ?? readBefore(request, limit)) : emptyBody
  if (known !== undefined) return done(known)
  const refused = refusedBody(request, limit)
  const sendContinue = takeExpectation(request)
  if (refused === undefined && (isDeferred || sendContinue !== undefined)) {
    return done(deferred(request, limit, sendContinue))
  }
  const settle = onlyFirst(done)
  takeFault(request, settle)
  if (refused === undefined) return readStream(request, limit, settle)
  request.resume()
  settle(refused)
}
