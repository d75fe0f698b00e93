/** An HTTP client that sends any method, any headers and any bytes. */

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
  /** The body as it was received. */
  readonly text: string
  /** The body parsed as JSON, or `undefined` if it is not JSON. */
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

/** Sends a request on a new connection. */
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
    // Ignored after a response, which a server may send before it has read the whole body.
    request.on("error", reject)
    request.end(body)
  })

/** Writes bytes to a new connection, and returns what the server sends until it closes it. */
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

/** Parses the status line and the headers of a response. */
const parseHead = (head: string) => {
  const [statusLine = "", ...lines] = head.split("\r\n")
  const headers = lines.map((line) => {
    const colon = line.indexOf(":")
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
  })
  return { status: Number(statusLine.split(" ")[1]), headers: Object.fromEntries(headers) }
}

/** Parses the responses on a connection. Each needs a `Content-Length`, or no body. */
export const parseResponses = (raw: string): ReadonlyArray<Incoming> => {
  const responses: Array<Incoming> = []
  let rest = Buffer.from(raw)
  while (rest.length > 0) {
    const bodyStart = rest.indexOf("\r\n\r\n") + 4
    const { headers, status } = parseHead(rest.subarray(0, bodyStart - 4).toString())
    const bodyEnd = bodyStart + Number(headers["content-length"] ?? 0)
    const body = rest.subarray(bodyStart, bodyEnd).toString()
    if (status !== 100) responses.push(incoming(status, headers, body))
    rest = rest.subarray(bodyEnd)
  }
  return responses
}
