/** Sends responses' streams. */

import { Readable } from "node:stream"
import type { TextStream } from "@tenure/core/adapter"
import type { NodeResponse } from "./types.ts"

// How long a client may take to read a text. Longer ones are about 64 KiB.
const patienceMillis = 60_000

/**
 * Converts a response's stream for Node. Takes the next text after sending the previous one, ends the
 * stream when it is destroyed, and destroys it after a minute without a read.
 */
export const toReadable = (texts: TextStream): Readable => {
  let patience: NodeJS.Timeout | undefined
  const readable = new Readable({
    // Nothing is read ahead.
    highWaterMark: 0,
    read: () => {
      clearTimeout(patience)
      texts.receive((text) => {
        if (readable.destroyed) return
        if (text !== undefined) patience = setTimeout(() => readable.destroy(), patienceMillis)
        readable.push(text ?? null, "utf8")
      })
    },
    destroy: (fault, done) => {
      clearTimeout(patience)
      texts.close()
      done(fault)
    },
  })
  return readable
}

/** Sends a stream. While it waits for a text, it is little more than this object. */
class Sending {
  private readonly texts: TextStream
  private readonly response: NodeResponse
  private readonly send: (text: string | undefined) => void
  private patience: NodeJS.Timeout | undefined

  constructor(texts: TextStream, response: NodeResponse) {
    this.texts = texts
    this.response = response
    this.send = (text) => {
      try {
        this.write(text)
      } catch {
        // A host's middleware may write in place of Node. Other streams are not to notice that it fails.
        response.destroy()
      }
    }
    response.on("close", () => this.end())
    response.on("drain", () => this.resume())
    // A broken connection is not the host's error.
    response.on("error", ignore)
  }

  next(): void {
    this.texts.receive(this.send)
  }

  private write(text: string | undefined): void {
    const { response } = this
    if (response.destroyed) return
    if (text === undefined) response.end()
    else if (response.write(text, "utf8")) this.next()
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
    this.texts.close()
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
