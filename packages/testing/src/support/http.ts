/** An HTTP client for any method, headers and bytes. */

import * as Http from "node:http"
import * as Net from "node:net"
import { text } from "node:stream/consumers"
import * as Predicate from "effect/Predicate"
import { expect } from "vitest"

/** A request. */
export interface Outgoing {
  readonly method?: string
  readonly path: string
  readonly headers?: Http.OutgoingHttpHeaders
  readonly body?: string | Uint8Array
}

/** A response. */
export interface Incoming {
  /** The request's method, if `send` has sent it. */
  readonly method?: string | undefined
  /** The request's path with its query, if `send` has sent it. */
  readonly path?: string | undefined
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
            resolve({
              method,
              path,
              ...incoming(response.statusCode ?? 0, plain(response.headers), content),
            }),
          reject,
        )
      },
    )
    // Ignored after a response, because a server may respond before it has read the whole body.
    request.on("error", reject)
    request.end(body)
  })

/** Writes bytes to a new connection, and returns everything until the server closes it. */
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

/** Parses a response's status line and headers. */
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

/** The format for request and webhook ids. */
export const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Matches times in responses. */
export const instant: unknown = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

/** Returns a JSON object's fields; fails the test for any other value. */
export const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  Predicate.isObject(value) ? value : expect.fail(`${JSON.stringify(value)} is not an object`)

/** Returns the data fields in a response. */
export const dataOf = ({ body }: Incoming): Readonly<Record<string, unknown>> =>
  fieldsOf(fieldsOf(body)["data"])

/** Returns the list items in a response. */
export const itemsOf = ({ body }: Incoming): ReadonlyArray<Readonly<Record<string, unknown>>> => {
  const { data } = fieldsOf(body)
  return Array.isArray(data) ? data : expect.fail(`${JSON.stringify(body)} has no list`)
}

/** Returns the webhook's id and secret in a response. */
export const webhookOf = (response: Incoming): { readonly id: string; readonly secret: string } => {
  const { id, secret } = dataOf(response)
  return { id: String(id), secret: String(secret) }
}

/** Expects the headers common to all responses. */
export const expectHeaders = ({ headers }: Incoming): void => {
  expect(headers["content-type"]).toBe("application/json")
  expect(headers["x-ratelimit-limit"]).toMatch(/^[1-9][0-9]*$/)
  expect(headers["x-ratelimit-remaining"]).toMatch(/^[0-9]+$/)
  expect(headers["x-ratelimit-reset"]).toMatch(/^[0-9]{10}$/)
}

/** The request as the envelope of its response tells it. */
const told = ({ method, path }: Incoming) => ({ method, path: path?.split("?")[0] })

/** Expects a success. Besides a message, it has only the given fields. */
export const expectSuccess = (
  response: Incoming,
  result: { readonly total?: number; readonly next?: unknown; readonly data: unknown },
): Readonly<Record<string, unknown>> => {
  expectHeaders(response)
  expect(response.status).toBe(200)
  expect(response.body).toStrictEqual({
    ok: true,
    request_id: expect.stringMatching(uuid),
    ...told(response),
    code: 200,
    message: expect.stringMatching(/./),
    ...result,
  })
  return fieldsOf(response.body)
}

/**
 * Expects a failure: one `error` with the given code, or several `errors` with the given codes.
 *
 * @param details - the error's fields besides code and message
 */
export const expectFailure = (
  response: Incoming,
  status: number,
  codes: string | ReadonlyArray<string>,
  details: Readonly<Record<string, unknown>> = {},
): Readonly<Record<string, unknown>> => {
  const described = (code: string) => ({
    error_code: code,
    message: expect.stringMatching(/./),
    ...details,
  })
  expectHeaders(response)
  expect(response.status).toBe(status)
  expect(response.body).toStrictEqual({
    ok: false,
    request_id: expect.stringMatching(uuid),
    ...told(response),
    code: status,
    ...(typeof codes === "string" ? { error: described(codes) } : { errors: codes.map(described) }),
  })
  return fieldsOf(response.body)
}

/** Expects that a request is refused as invalid, with a text in the message. */
export const expectInvalid = (response: Incoming, problem: string | RegExp = ""): void => {
  const { error } = expectFailure(response, 422, "VALIDATION_ERROR")
  expect(fieldsOf(error)["message"]).toMatch(problem)
}

/** Expects the two complaints about an end date in neither format. */
export const expectNoDate = (response: Incoming): void =>
  void expectFailure(response, 422, ["VALIDATION_ERROR", "VALIDATION_ERROR"])

/** Expects a response from outside the API: from the host, or from a server without a host. */
export const expectElsewhere = ({ body, status }: Incoming): void => {
  expect([400, 404]).toContain(status)
  if (Predicate.hasProperty(body, "request_id")) {
    expect(body).toMatchObject({ code: 404, error: { error_code: "ROUTE_NOT_FOUND" } })
  }
}

/** Tells whether a server on this machine accepts connections at a port. */
export const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = Net.connect(port, "127.0.0.1")
      .once("connect", () => {
        socket.destroy()
        resolve(true)
      })
      .once("error", () => resolve(false))
  })

/** A block between two empty lines: field values by name. */
type Block = Readonly<Record<string, string>>

/** An open stream. */
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

/** Parses a block. Each line is a field with a value, or a comment. */
const parseBlock = (block: string): Block =>
  Object.fromEntries(
    block.split("\n").map((line) => {
      const colon = line.indexOf(": ")
      return colon === -1 ? ["", line] : [line.slice(0, colon), line.slice(colon + 2)]
    }),
  )

/** Opens a stream on a new connection, or returns another response. */
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
        let received = ""
        response
          .setEncoding("utf8")
          .on("data", (chunk: string) => (received += chunk))
          .on("error", () => {})
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          blocks: () => received.split("\n\n").slice(0, -1).map(parseBlock),
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
