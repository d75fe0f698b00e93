/** Sends the streams of responses. */

import { Readable } from "node:stream"
import type { ApiResponse } from "@tenure/core/Envelope"

/** The body of a response that is a stream. */
export type TextStream = Exclude<ApiResponse["body"], string>

// How long a client may take to read a text. Longer ones are about 64 KiB.
const patienceMillis = 60_000

/**
 * Converts the stream of a response for Node. It takes the next text when the one before was sent, ends
 * the stream when it is destroyed, and is destroyed when nobody takes a text for a minute.
 */
export const toReadable = (texts: TextStream): Readable => {
  const iterator = texts[Symbol.asyncIterator]()
  let patience: NodeJS.Timeout | undefined
  const readable = new Readable({
    // Nothing is read ahead.
    highWaterMark: 0,
    read: () => {
      clearTimeout(patience)
      iterator.next().then(
        ({ done, value }) => {
          patience = setTimeout(() => readable.destroy(), patienceMillis)
          readable.push(done === true ? null : value, "utf8")
        },
        (fault: Error) => readable.destroy(fault),
      )
    },
    destroy: (fault, done) => {
      clearTimeout(patience)
      void iterator.return?.()
      done(fault)
    },
  })
  return readable
}

/** Ends a stream that cannot be sent. */
export const discard = (texts: TextStream): void => void texts[Symbol.asyncIterator]().return?.()
