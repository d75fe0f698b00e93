/** An HTTP client that does as it is told: any method, any header, any bytes. */

import * as Http from "node:http"
import * as Net from "node:net"
import { text } from "node:stream/consumers"

/** A request. */
export interface Outgoing {
  readonly method?: string
  readonly path: string
  readonly headers?: Http.OutgoingHttpHeaders
  readonly body?: string | Uint8Array
}

/** A response. */
export interface Incoming {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The body as it came. */
  readonly text: string
  /** The body parsed as JSON; `undefined` where it is none. */
  readonly body: unknown
}

const parse = (body: string): unknown => {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

const incoming = (
  status: number,
  headers: Readonly<Record<string, string | undefined>>,
  body: string,
): Incoming => ({ status, headers, text: body, body: parse(body) })

const plain = (headers: Http.IncomingHttpHeaders): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value?.toString()]))

/** Sends a request on a connection of its own. */
export const send = (
  url: string,
  { body, headers = {}, method = "GET", path }: Outgoing,
): Promise<Incoming> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const request = Http.request(
      { hostname, port, path, method, headers, agent: false },
      (response) => {
        text(response).then(
          (content) =>
            resolve(incoming(response.statusCode ?? 0, plain(response.headers), content)),
          reject,
        )
      },
    )
    // A server may answer before it has read the whole body; the answer counts.
    request.on("error", reject)
    request.end(body)
  })

/** Writes bytes to a socket, and gives all that comes back until the server closes it. */
export const exchange = (
  url: string,
  ...chunks: ReadonlyArray<string | Uint8Array>
): Promise<string> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const socket = Net.connect(Number(port), hostname, () => {
      for (const chunk of chunks) socket.write(chunk)
    })
    text(socket).then(resolve, reject)
  })

/** Splits what came back on a socket into responses, by their lengths. */
export const parseResponses = (raw: string): ReadonlyArray<Incoming> => {
  const responses: Array<Incoming> = []
  let rest = Buffer.from(raw)
  while (rest.length > 0) {
    const end = rest.indexOf("\r\n\r\n")
    const [statusLine = "", ...lines] = rest.subarray(0, end).toString().split("\r\n")
    const headers = Object.fromEntries(
      lines.map((line) => {
        const colon = line.indexOf(":")
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
      }),
    )
    const length = Number(headers["content-length"] ?? 0)
    const status = Number(statusLine.split(" ")[1])
    const body = rest.subarray(end + 4, end + 4 + length).toString()
    if (status !== 100) responses.push(incoming(status, headers, body))
    rest = rest.subarray(end + 4 + length)
  }
  return responses
}
