/** Exchanges: operations of the API whose parts are changed, put together as bytes. */

import { METHODS } from "node:http"
import * as fc from "fast-check"
import { body } from "./bodies.ts"
import type { Exchange } from "./connection.ts"
import { type Line, line } from "./targets.ts"
import { adminToken, token, webhookPlaceholder } from "./vocabulary.ts"

/** How the length of a body is announced, and the body as it is sent. */
interface Framing {
  readonly fields: ReadonlyArray<string>
  readonly sent: Buffer
  /** Whether the server waits for more. */
  readonly isCut?: boolean
  /** Whether the announcement agrees with what is sent. */
  readonly isValid: boolean
}

const authorization: fc.Arbitrary<ReadonlyArray<string>> = fc.oneof(
  { weight: 10, arbitrary: fc.constant([`Authorization: Bearer ${token}`]) },
  { weight: 30, arbitrary: fc.constant([`Authorization: Bearer ${adminToken}`]) },
  {
    weight: 5,
    arbitrary: fc.constantFrom(
      [],
      [`Authorization: bearer ${token}`],
      [`AUTHORIZATION:Bearer ${token} `],
      [`Authorization: Bearer  ${token}`],
      [`Authorization: Bearer\t${token}`],
      [`Authorization: Bearer ${token}, Bearer ${token}`],
      [`Authorization: Bearer ${token}`, `Authorization: Bearer ${token}`],
      [`Authorization: Bearer ${token}`, "Authorization: Bearer other"],
      ["Authorization: Basic dXNlcjpwYXNz", `Authorization: Bearer ${token}`],
      [`Authorization: ${token}`],
      ["Authorization:"],
      ["Authorization: Bearer"],
      ["Authorization: Bearer __proto__"],
      ["Authorization: Bearer \xff\xe9"],
      [`Authorization: Bearer ${"x".repeat(5000)}`],
      [`Authorization: Bearer ${token.slice(1)}`],
    ),
  },
)

const contentType: fc.Arbitrary<ReadonlyArray<string>> = fc.oneof(
  { weight: 20, arbitrary: fc.constant(["Content-Type: application/json"]) },
  { weight: 3, arbitrary: fc.constant(["Content-Type: application/x-ndjson"]) },
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      [],
      ["Content-Type: Application/JSON ; charset=utf-8"],
      ["Content-Type: application/json;charset=latin1"],
      ["Content-Type: application/json;"],
      ["Content-Type: application/json; a"],
      ["Content-Type: application/jsonp"],
      ["Content-Type: application/merge-patch+json"],
      ["Content-Type: text/plain"],
      ["Content-Type:"],
      ["Content-Type: application/json, text/plain"],
      ["Content-Type: application/json", "Content-Type: text/plain"],
      ["Content-Type: text/plain", "Content-Type: application/json"],
      ["Content-Type: \xe9/json"],
      ["Content-Type: application/json", "Content-Encoding: gzip"],
      ["Content-Type: application/json", "Content-Encoding: identity"],
    ),
  },
)

const idempotencyKey: fc.Arbitrary<ReadonlyArray<string>> = fc.oneof(
  { weight: 10, arbitrary: fc.constant([]) },
  {
    weight: 4,
    arbitrary: fc.integer({ min: 1, max: 50 }).map((n) => [`Idempotency-Key: key-${n}`]),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      ["Idempotency-Key:"],
      ["Idempotency-Key: a b"],
      ["Idempotency-Key: \xe9"],
      ["Idempotency-Key: __proto__"],
      ["Idempotency-Key: a", "Idempotency-Key: a"],
      [`Idempotency-Key: ${"x".repeat(255)}`],
      [`Idempotency-Key: ${"x".repeat(256)}`],
    ),
  },
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

const host = fc.oneof(
  { weight: 30, arbitrary: fc.constant(["Host: localhost"]) },
  {
    weight: 1,
    arbitrary: fc.constantFrom([], ["Host:"], ["Host: a@b"], ["Host: a b"], ["Host: \xe9"]),
  },
)

/** Lines of fields, and whether they leave the request valid. */
const fields: fc.Arbitrary<{ readonly lines: ReadonlyArray<string>; readonly isValid: boolean }> =
  fc
    .tuple(
      host,
      authorization,
      contentType,
      idempotencyKey,
      fc.oneof(
        { weight: 8, arbitrary: fc.constant([]) },
        { weight: 4, arbitrary: fc.uniqueArray(fc.constantFrom(...ignored), { maxLength: 3 }) },
      ),
      fc.oneof(
        { weight: 14, arbitrary: fc.constant([]) },
        { weight: 1, arbitrary: fc.tuple(fc.constantFrom(...odd, final)) },
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
  [
    "g\r\n",
    "-1\r\n",
    "\r\n",
    "fffffffffffffffff\r\n",
    "0x5\r\n",
    "5\nhello\r\n0\r\n\r\n",
    "5\r\nhello0\r\n\r\n",
    "2\r\nhello\r\n0\r\n\r\n",
    "5;\r\nhello\r\n0\r\n\r\n",
  ].map((text) => ({
    fields: chunkedField,
    sent: Buffer.concat([chunksOf(content, 1000, ""), Buffer.from(text)]),
    isValid: false,
  }))

const faultyLengths = (content: Buffer): ReadonlyArray<Framing> =>
  [
    [announced(content.length), announced(content.length)],
    [announced(content.length), announced(content.length + 1)],
    [announced(content.length), ...chunkedField],
    [`Content-Length: +${content.length}`],
    [`Content-Length: ${content.length}, ${content.length}`],
    ["Content-Length: 0x5"],
    ["Content-Length: -1"],
    ["Content-Length: 1e3"],
    ["Content-Length: 99999999999999999999999"],
    ["Content-Length:"],
    ["Transfer-Encoding: chunked, chunked"],
    ["Transfer-Encoding: identity"],
    ["Transfer-Encoding: xchunked"],
    ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"],
  ].map((faulty) => ({ fields: faulty, sent: content, isValid: false }))

const incomplete = (content: Buffer): ReadonlyArray<Framing> => [
  { fields: [announced(content.length + 1)], sent: content, isCut: true, isValid: false },
  { fields: [announced(content.length + 70_000)], sent: content, isCut: true, isValid: false },
  { fields: chunkedField, sent: chunksOf(content, 100, ""), isCut: true, isValid: false },
]

const framing = (content: Buffer): fc.Arbitrary<Framing> =>
  fc.oneof(
    {
      weight: 20,
      arbitrary: fc.constant({
        fields: [announced(content.length)],
        sent: content,
        isValid: true,
      }),
    },
    { weight: 3, arbitrary: chunked(content) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        ...faultyChunks(content),
        ...faultyLengths(content),
        ...incomplete(content),
      ),
    },
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

const version = fc.oneof(
  { weight: 60, arbitrary: fc.constant("1.1") },
  { weight: 1, arbitrary: fc.constantFrom("1.0", "0.9", "2.0", "1.2", "1.1 ", "x") },
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

// The first may delete the webhook, or publish an event: what the second showed of it would depend on the time.
const pair = fc.tuple(followed, request).filter(([, second]) => !namesWebhook(second))

/** Exchanges with one request, and some with two at once. */
export const exchange: fc.Arbitrary<Exchange> = fc
  .tuple(
    fc.oneof({ weight: 8, arbitrary: fc.tuple(request) }, { weight: 1, arbitrary: pair }),
    fc.oneof(
      { weight: 8, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: fc.array(fc.nat(100_000), { minLength: 1, maxLength: 5 }) },
    ),
  )
  .map(([requests, offsets]) => ({
    packets: split(Buffer.concat(requests.map(({ bytes }) => bytes)), offsets),
    methods: requests.map(({ method }) => method),
    targets: requests.map(({ target }) => target),
    isCut: requests.some(({ isCut }) => isCut),
    isValid: requests.every(({ isValid }) => isValid),
  }))
