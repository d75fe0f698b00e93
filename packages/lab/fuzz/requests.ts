/** Exchanges: API operations whose parts are changed, put together as bytes. */

import { METHODS } from "node:http"
import * as fc from "fast-check"
import { body } from "./bodies.ts"
import type { Exchange } from "./connection.ts"
import { type Line, line } from "./targets.ts"
import { adminToken, token, webhookPlaceholder, words } from "./vocabulary.ts"

/** How a body's length is announced, and the body as it is sent. */
interface Framing {
  readonly fields: ReadonlyArray<string>
  readonly sent: Buffer
  /** Whether the server waits for more. */
  readonly isCut?: boolean
  /** Whether the announcement agrees with what is sent. */
  readonly isValid: boolean
}

/** Header lines, mostly usual ones. */
type Lines = fc.Arbitrary<ReadonlyArray<string>>

const weighted = <A>(...parts: ReadonlyArray<readonly [weight: number, fc.Arbitrary<A>]>) =>
  fc.oneof(...parts.map(([weight, arbitrary]) => ({ weight, arbitrary })))

/** A line for each value. */
const field = (name: string, ...values: ReadonlyArray<string>) =>
  values.map((value) => [`${name}${value}`])

const bearer = `Authorization: Bearer ${token}`
const json = "Content-Type: application/json"

const authorization: Lines = weighted<ReadonlyArray<string>>(
  [10, fc.constant([bearer])],
  [30, fc.constant([`Authorization: Bearer ${adminToken}`])],
  [
    5,
    fc.constantFrom<ReadonlyArray<string>[]>(
      ...field("AUTHORIZATION:", `Bearer ${token} `),
      ...field("Authorization: ", `bearer ${token}`, `Bearer  ${token}`, `Bearer\t${token}`),
      ...field("Authorization: ", `Bearer ${token}, Bearer ${token}`, token, "Bearer"),
      ...field("Authorization: ", "Bearer __proto__", "Bearer \xff\xe9"),
      ...field("Authorization: Bearer ", "x".repeat(5000), token.slice(1)),
      [],
      ["Authorization:"],
      [bearer, bearer],
      [bearer, "Authorization: Bearer other"],
      ["Authorization: Basic dXNlcjpwYXNz", bearer],
    ),
  ],
)

const contentType: Lines = weighted<ReadonlyArray<string>>(
  [20, fc.constant([json])],
  [3, fc.constant(["Content-Type: application/x-ndjson"])],
  [
    4,
    fc.constantFrom<ReadonlyArray<string>[]>(
      ...field("Content-Type: ", "Application/JSON ; charset=utf-8", "application/json;"),
      ...field("Content-Type: ", "application/json;charset=latin1", "application/json; a"),
      ...field("Content-Type: ", "application/jsonp", "application/merge-patch+json"),
      ...field("Content-Type: ", "text/plain", "application/json, text/plain", "\xe9/json"),
      [],
      ["Content-Type:"],
      [json, "Content-Type: text/plain"],
      ["Content-Type: text/plain", json],
      [json, "Content-Encoding: gzip"],
      [json, "Content-Encoding: identity"],
    ),
  ],
)

const idempotencyKey: Lines = weighted<ReadonlyArray<string>>(
  [10, fc.constant([])],
  [4, fc.integer({ min: 1, max: 50 }).map((n) => [`Idempotency-Key: key-${n}`])],
  [
    1,
    fc.constantFrom<ReadonlyArray<string>[]>(
      ...field("Idempotency-Key:", "", " a b", " \xe9", " __proto__"),
      ...field("Idempotency-Key: ", "x".repeat(255), "x".repeat(256)),
      ["Idempotency-Key: a", "Idempotency-Key: a"],
    ),
  ],
)

/** Fields that a server ignores. */
const ignored = [
  "__proto__: x",
  "constructor: x",
  "hasOwnProperty: x",
  "X-Forwarded-For: 203.0.113.1, unknown",
  "X-Http-Method-Override: DELETE",
  "Accept: text/plain",
  "Accept-Encoding: gzip",
  "Cookie: a=b; __proto__=c",
  "If-None-Match: *",
  "Range: bytes=0-1",
  "Connection: keep-alive",
  "Upgrade: h2c",
  "X-Text: \xe9\xff",
  "X-Empty:",
  `X-Long: ${"x".repeat(8000)}`,
  Array.from({ length: 90 }, (_, index) => `X-Many-${index}: ${index}`).join("\r\n"),
]

/** The field after which Node reads no other request. */
const final = "Connection: close"

/** Fields that invalidate a request, or change how it is read. */
const odd = [
  "X-Folded: a\r\n b",
  "X-Space : a",
  ": no name",
  "no colon",
  "X-Control: a\x01b",
  "X-Null: a\0b",
  "X-Return: a\rb",
  "X-Feed: a\nX-More: b",
  "X-N\xe9me: a",
  "Expect: 100-continue",
  "Expect: something",
  "Host: other",
  "TE: trailers",
  `X-Long: ${"x".repeat(17_000)}`,
  Array.from({ length: 2100 }, (_, index) => `X-${index}:`).join("\r\n"),
  "Transfer-Encoding: gzip",
]

const host: Lines = weighted<ReadonlyArray<string>>(
  [30, fc.constant(["Host: localhost"])],
  [1, fc.constantFrom<string[][]>([], ...field("Host:", "", " a@b", " a b", " \xe9"))],
)

/** Field lines, and whether they leave the request valid. */
const fields: fc.Arbitrary<{ readonly lines: ReadonlyArray<string>; readonly isValid: boolean }> =
  fc
    .tuple(
      host,
      authorization,
      contentType,
      idempotencyKey,
      weighted<ReadonlyArray<string>>(
        [8, fc.constant([])],
        [4, fc.uniqueArray(fc.constantFrom(...ignored), { maxLength: 3 })],
      ),
      weighted<ReadonlyArray<string>>(
        [14, fc.constant([])],
        [1, fc.tuple(fc.constantFrom(...odd, final))],
      ),
    )
    .map(([hosts, authorizations, types, keys, more, odds]) => ({
      lines: [...hosts, ...authorizations, ...types, ...keys, ...more, ...odds],
      isValid: odds.length === 0 && hosts[0] === "Host: localhost",
    }))

const chunksOf = (content: Buffer, size: number, extension: string): Buffer => {
  const parts: Array<Buffer> = []
  for (let start = 0; start < content.length; start += size) {
    const chunk = content.subarray(start, start + size)
    const head = `${chunk.length.toString(16)}${extension}\r\n`
    parts.push(Buffer.from(head), chunk, Buffer.from("\r\n"))
  }
  return Buffer.concat(parts)
}

const chunkedField = ["Transfer-Encoding: chunked"]

const announced = (length: number): string => `Content-Length: ${length}`

const chunked = (content: Buffer): fc.Arbitrary<Framing> =>
  fc
    .tuple(fc.integer({ min: 1, max: 70_000 }), fc.constantFrom("", ";a=b", ";a"))
    .map(([size, extension]) => ({
      fields: chunkedField,
      sent: Buffer.concat([
        chunksOf(content, Math.max(size, Math.ceil(content.length / 500)), extension),
        Buffer.from("0\r\n\r\n"),
      ]),
      isValid: true,
    }))

const faultyChunks = (content: Buffer): ReadonlyArray<Framing> =>
  // A bar stands for a line's end, a tilde for half a one.
  words("g| -1| | fffffffffffffffff| 0x5| 5~hello|0|| 5|hello0|| 2|hello|0|| 5;|hello|0||").map(
    (text) => ({
      fields: chunkedField,
      sent: Buffer.concat([
        chunksOf(content, 1000, ""),
        Buffer.from(text.replaceAll("~", "\n").replaceAll("|", "\r\n")),
      ]),
      isValid: false,
    }),
  )

const faultyLengths = (content: Buffer): ReadonlyArray<Framing> => {
  const { length } = content
  return [
    [announced(length), announced(length)],
    [announced(length), announced(length + 1)],
    [announced(length), ...chunkedField],
    ...field("Content-Length: ", `+${length}`, `${length}, ${length}`, "0x5", "-1", "1e3"),
    ...field("Content-Length:", "", " 99999999999999999999999"),
    ...field("Transfer-Encoding: ", "chunked, chunked", "identity", "xchunked"),
    ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"],
  ].map((faulty) => ({ fields: faulty, sent: content, isValid: false }))
}

const incomplete = (content: Buffer): ReadonlyArray<Framing> => [
  { fields: [announced(content.length + 1)], sent: content, isCut: true, isValid: false },
  { fields: [announced(content.length + 70_000)], sent: content, isCut: true, isValid: false },
  { fields: chunkedField, sent: chunksOf(content, 100, ""), isCut: true, isValid: false },
]

const framing = (content: Buffer): fc.Arbitrary<Framing> =>
  weighted<Framing>(
    [20, fc.constant({ fields: [announced(content.length)], sent: content, isValid: true })],
    [3, chunked(content)],
    [
      1,
      fc.constantFrom(...faultyChunks(content), ...faultyLengths(content), ...incomplete(content)),
    ],
  )

/** A request as bytes. */
interface Request {
  readonly method: string
  readonly target: string
  readonly bytes: Buffer
  readonly isCut: boolean
  readonly isValid: boolean
}

/** Whether Node's parser certainly accepts a request line. */
const isPlain = (method: string, target: string): boolean =>
  METHODS.includes(method) && method !== "CONNECT" && /^\/[\x21-\x7e]*$/.test(target)

const assemble = (
  { method, target }: Line,
  version: string,
  { isValid, lines }: { readonly lines: ReadonlyArray<string>; readonly isValid: boolean },
  frame: Framing,
): Request => {
  const head = [`${method} ${target} HTTP/${version}`, ...lines, ...frame.fields, "", ""]
  return {
    method,
    target,
    bytes: Buffer.concat([Buffer.from(head.join("\r\n"), "latin1"), frame.sent]),
    isCut: frame.isCut ?? false,
    isValid: isValid && frame.isValid && version === "1.1" && isPlain(method, target),
  }
}

const version = weighted<string>(
  [60, fc.constant("1.1")],
  [1, fc.constantFrom("1.0", "0.9", "2.0", "1.2", "1.1 ", "x")],
)

const none: Framing = { fields: [], sent: Buffer.alloc(0), isValid: true }

const takesNoBody = ({ method }: Line): boolean => method === "GET" || method === "DELETE"

const request: fc.Arbitrary<Request> = fc
  .tuple(line, body, fc.integer({ min: 0, max: 9 }))
  .chain(([start, content, chance]) =>
    fc
      .tuple(
        version,
        fields,
        // Most requests that need no body have none.
        takesNoBody(start) && chance > 0 ? fc.constant(none) : framing(content),
      )
      .map(([http, head, frame]) => assemble(start, http, head, frame)),
  )

const split = (bytes: Buffer, offsets: ReadonlyArray<number>): ReadonlyArray<Buffer> => {
  const places = [...new Set(offsets.map((offset) => offset % bytes.length))]
    .filter((place) => place > 0)
    .toSorted((a, b) => a - b)
  return [...places, bytes.length].map((end, index) => bytes.subarray(places[index - 1] ?? 0, end))
}

const followed = request.filter(({ bytes }) => !bytes.includes(final))

const namesWebhook = ({ bytes }: Request): boolean => bytes.includes(webhookPlaceholder)

// The first may delete the webhook, or publish an event: what the second showed would depend on the time.
const pair = fc.tuple(followed, request).filter(([, second]) => !namesWebhook(second))

/** Exchanges with one request, and some with two at once. */
export const exchange: fc.Arbitrary<Exchange> = fc
  .tuple(
    weighted<ReadonlyArray<Request>>([8, fc.tuple(request)], [1, pair]),
    weighted<ReadonlyArray<number>>(
      [8, fc.constant([])],
      [1, fc.array(fc.nat(100_000), { minLength: 1, maxLength: 5 })],
    ),
  )
  .map(([requests, offsets]) => ({
    packets: split(Buffer.concat(requests.map(({ bytes }) => bytes)), offsets),
    methods: requests.map(({ method }) => method),
    targets: requests.map(({ target }) => target),
    isCut: requests.some(({ isCut }) => isCut),
    isValid: requests.every(({ isValid }) => isValid),
  }))
