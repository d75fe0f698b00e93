/** Sends responses' streams. */

import { Readable } from "node:stream"
import type { ApiResponse } from "@tenure/core/adapter"
import type { NodeResponse } from "./types.ts"

/** A streamed response body. */
export type TextStream = Exclude<ApiResponse["body"], string>

// How long a client may take to read a text. Longer ones are about 64 KiB.
const patienceMillis = 60_000

/**
 * Converts a response's stream for Node. Takes the next text after sending the previous one, ends the
 * stream when it is destroyed, and destroys it after a minute without a read.
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
          if (readable.destroyed) return
          if (done !== true) patience = setTimeout(() => readable.destroy(), patienceMillis)
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

/** Sends a stream. While it waits for a text, it is little more than this object and a promise. */
class Sending {
  private readonly texts: AsyncIterator<string>
  private readonly response: NodeResponse
  private patience: NodeJS.Timeout | undefined

  constructor(texts: TextStream, response: NodeResponse) {
    this.texts = texts[Symbol.asyncIterator]()
    this.response = response
    response.on("close", () => this.end())
    response.on("drain", () => this.resume())
    // A broken connection is not the host's error.
    response.on("error", ignore)
  }

  next(): void {
    this.texts.next().then(
      (result) => this.send(result),
      () => this.response.destroy(),
    )
  }

  private send({ done, value }: IteratorResult<string>): void {
    const { response } = this
    if (response.destroyed) return
    if (done === true) response.end()
    else if (response.write(value, "utf8")) this.next()
    else this.patience = setTimeout(() => response.destroy(), patienceMillis)
  }

  private resume(): void {
    if (this.patience === undefined) return
    clearTimeout(this.patience)
    this.patience = undefined
    this.next()
  }

  private end(): void {
    clearTimeout(this.patience)
    void this.texts.return?.()
  }
}

const ignore = (): void => {}

/**
 * Sends a stream as a response's body. Takes the next text after sending the previous one, ends the
 * stream when the connection breaks, and breaks the connection when the client reads nothing for a
 * minute.
 */
export const stream = (texts: TextStream, response: NodeResponse): void =>
  new Sending(texts, response).next()

/** Ends an unsent stream. */
export const discard = (texts: TextStream): void => void texts[Symbol.asyncIterator]().return?.()
