/** One connection to the feed, by Server-Sent Events. */

import { authorization, type Connection } from "./attempt.ts"
import { chunksOf, read } from "./body.ts"
import { type Deadline, deadline } from "./deadline.ts"
import { type Frame, makeParser } from "./eventStream.ts"
import type { Outgoing } from "./request.ts"
import { invalid, refusal } from "./response.ts"
import { TenureError } from "./TenureError.ts"

/** A connection that receives frames. */
export interface FeedStream {
  /** The frames, until the server ends them or the connection fails. */
  readonly frames: AsyncIterable<Frame>
  /** Why the connection has failed, if it has. */
  readonly failure: () => TenureError | undefined
  /** Closes the connection. */
  readonly close: () => void
}

const mediaType = "text/event-stream"

// The server sends something every 15 seconds.
const longestSilence = 45_000

/** Why nothing arrives. A runtime may name the URL in its error, and so a ticket. */
const failureOf = (limit: Deadline, secret: string | undefined, cause: unknown): TenureError => {
  if (limit.isOver())
    return new TenureError({ code: "TIMEOUT", message: "Nothing arrived in time." })
  const isSecret = secret !== undefined && String(cause).includes(secret)
  return new TenureError({
    code: "NETWORK_ERROR",
    message: "The connection broke.",
    cause: isSecret ? undefined : cause,
  })
}

/** Iterates over the frames in chunks of bytes. */
async function* framesOf(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<Frame> {
  const decoder = new TextDecoder()
  const parse = makeParser()
  let length = 0
  for await (const chunk of chunks) {
    const frames = parse(decoder.decode(chunk, { stream: true }))
    length = frames.length === 0 ? length + chunk.length : 0
    if (length > maxBytes) throw invalid(200, `has an event that is longer than ${maxBytes} bytes`)
    yield* frames
  }
}

/** Iterates over the chunks of a body, and gives up when nothing has arrived for too long. */
const watched = (body: ReadableStream<Uint8Array>, limit: Deadline): AsyncIterable<Uint8Array> => {
  const chunks = chunksOf(body)[Symbol.asyncIterator]()
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => {
        limit.start(longestSilence)
        return chunks.next().finally(limit.stop)
      },
    }),
  }
}

/**
 * Opens a connection.
 *
 * @param ticket - what says who connects, in place of the token
 * @param signal - closes the connection
 * @returns the connection, or why it failed
 */
export const open = async (
  { baseUrl, fetch, maxResponseBytes, timeout, token }: Connection,
  { target }: Outgoing,
  ticket: string | undefined,
  signal: AbortSignal | undefined,
): Promise<FeedStream | TenureError> => {
  const limit = deadline(signal)
  const secret = ticket ?? token
  const errorOf = (cause: unknown): TenureError =>
    cause instanceof TenureError ? cause : failureOf(limit, secret, cause)

  const close = () => {
    limit.abort()
    limit.clear()
  }

  const receive = (body: ReadableStream<Uint8Array>): FeedStream => {
    let failure: TenureError | undefined
    async function* frames() {
      try {
        yield* framesOf(watched(body, limit), maxResponseBytes)
      } catch (cause) {
        failure = errorOf(cause)
      }
    }
    return { frames: frames(), failure: () => failure, close }
  }

  try {
    limit.start(timeout)
    const response = await fetch(baseUrl + target, {
      headers: { accept: mediaType, ...(ticket === undefined && authorization(token)) },
      // Another server must not see the token.
      redirect: "manual",
      signal: limit.signal,
    })
    const { body, headers, status } = response
    const isStream = headers.get("content-type")?.startsWith(mediaType) === true
    if (status === 200 && isStream && body !== null) return receive(body)
    const text = (await read(response, maxResponseBytes)) ?? ""
    limit.clear()
    return status === 200
      ? invalid(status, "is not an event stream")
      : refusal({ status, retryAfter: headers.get("retry-after"), text }, secret, Date.now())
  } catch (cause) {
    limit.clear()
    return errorOf(cause)
  }
}
