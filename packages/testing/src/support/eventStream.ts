/** A client of Server-Sent Events. */

import * as Http from "node:http"

/** What is between two empty lines of a stream: the values of its fields. */
type Block = Readonly<Record<string, string>>

/** A stream that is open. */
export interface EventStream {
  readonly status: number
  readonly headers: Http.IncomingHttpHeaders
  /** The blocks so far. */
  readonly blocks: () => ReadonlyArray<Block>
  /** Whether the server has ended it, rather than broken it off. */
  readonly isComplete: () => boolean
  /** Reads nothing until `resume`. */
  readonly pause: () => void
  readonly resume: () => void
  /** Breaks the connection. */
  readonly close: () => void
}

/** Parses a block, in which each line is a field with a value, or a comment. */
const parseBlock = (block: string): Block =>
  Object.fromEntries(
    block.split("\n").map((line) => {
      const colon = line.indexOf(": ")
      return colon === -1 ? ["", line] : [line.slice(0, colon), line.slice(colon + 2)]
    }),
  )

/** Opens a stream, or gets the response that is none, on a new connection. */
export const openEventStream = (
  url: string,
  path: string,
  headers: Http.OutgoingHttpHeaders,
): Promise<EventStream> =>
  new Promise((resolve, reject) => {
    const request = Http.request(
      new URL(path, url),
      { headers: { accept: "text/event-stream", ...headers }, agent: false },
      (response) => {
        let text = ""
        response
          .setEncoding("utf8")
          .on("data", (chunk: string) => (text += chunk))
          .on("error", () => {})
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          blocks: () => text.split("\n\n").slice(0, -1).map(parseBlock),
          isComplete: () => response.complete,
          pause: () => response.pause(),
          resume: () => response.resume(),
          close: () => request.destroy(),
        })
      },
    )
    request.on("error", reject)
    request.end()
  })
