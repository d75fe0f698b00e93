/** The bodies that operations take, whoever has read them. */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import * as Setting from "../../src/base/setting.ts"
import { ApiKeyId } from "../../src/base/values.ts"
import {
  type BodyFormat,
  type JsonObject,
  bodyOf,
  jsonLines,
  objectWith,
  optionalObject,
  readBody,
  readField,
} from "../../src/http/operation.ts"
import {
  type ArrivedBody,
  type Body,
  abortedBody,
  consumedBody,
  emptyBody,
  tooLargeBody,
} from "../../src/http/request.ts"

const utf8 = new TextEncoder()
const limit = 100

const bytes = (text: string): ArrivedBody => ({ _tag: "Bytes", bytes: utf8.encode(text) })
const parsed = (value: unknown): ArrivedBody => ({ _tag: "Parsed", value })

type Headers = Readonly<Record<string, string | ReadonlyArray<string>>>

const json: Headers = { "content-type": "application/json" }

const callWith = (body: Body, headers: Headers) => ({
  request: { method: "POST", path: "/", headers, body, remoteAddress: undefined },
  requestId: "a request",
  principal: {
    keyId: ApiKeyId("a key"),
    role: "client" as const,
    projects: "all" as const,
    isReadOnly: false,
  },
  params: {},
})

/** The body as it is read, or the error. */
const outcomeOf = <A, E>(reading: Effect.Effect<A, E>): Promise<A | E> =>
  Effect.runPromise(Effect.map(Effect.result(reading), Result.merge))

const readAs =
  (format: BodyFormat<JsonObject | string>) =>
  (body: Body, headers: Headers = json) =>
    outcomeOf(readBody(callWith(body, headers), limit, format))

const read = (body: Body, headers: Headers = json) =>
  outcomeOf(bodyOf(callWith(body, headers), limit))

const malformed = (message: string) => ({ _tag: "MalformedRequest", message })
const unsupported = (message: string) => ({ _tag: "UnsupportedMediaType", message })

const wrongType = unsupported("The content type must be application/json.")
const encoded = unsupported("The body must be sent without a content encoding.")
const notJson = malformed("The body is not valid JSON.")
const noObject = malformed("The body must be a JSON object.")

describe("a body in JSON", () => {
  it.each([
    "application/json",
    "application/json;charset=utf-8",
    "Application/JSON ; charset=utf-8",
    "application/json\t  ;x",
  ])("is read with the content type %j", async (type) => {
    expect(await read(bytes('{"a":1}'), { "content-type": type })).toEqual({ a: 1 })
  })

  it.each([
    [{}],
    [{ "content-type": "" }],
    [{ "content-type": "text/plain" }],
    [{ "content-type": "x-application/json" }],
    [{ "content-type": "application/jsonp" }],
    [{ "content-type": "application/json, text/plain" }],
    [{ "content-type": ["application/json", "application/json"] }],
  ])("is refused with %j", async (headers) => {
    expect(await read(bytes("{}"), headers)).toEqual(wrongType)
    expect(await read(bytes("{"), headers)).toEqual(wrongType)
  })

  it("has no content encoding", async () => {
    for (const encoding of ["identity", "IDENTITY"]) {
      expect(await read(bytes("{}"), { ...json, "content-encoding": encoding })).toEqual({})
    }
    for (const encoding of ["gzip", "identity, gzip", "x-identity", ["identity", "identity"]]) {
      expect(await read(bytes("{}"), { ...json, "content-encoding": encoding })).toEqual(encoded)
    }
  })

  it.each(["null", "[]", "7", '"text"', "true"])("is an object, and not %s", async (text) => {
    expect(await read(bytes(text))).toEqual(noObject)
    expect(await read(parsed(JSON.parse(text)))).toEqual(noObject)
  })

  it("is JSON in UTF-8, whose byte order mark is ignored", async () => {
    expect(await read(bytes('\uFEFF{"a":"ü"}'))).toEqual({ a: "ü" })
    expect(await read(bytes("{"))).toEqual(notJson)
    const broken = utf8.encode('{"a":"ü"}').filter((byte) => byte !== 0xc3)
    expect(await read({ _tag: "Bytes", bytes: broken })).toEqual(notJson)
  })

  it("has each field once, and numbers that floating point can hold", async () => {
    const repeated = await read(bytes('{"a":1,"a":2}'))
    expect(repeated).toMatchObject({ _tag: "InvalidInput", field: "a" })
    const rounded = await read(bytes('{"a":12345678901234567890}'))
    expect(rounded).toMatchObject({ _tag: "InvalidInput", field: "a" })
  })

  it("is missing if it is empty, whatever its type", async () => {
    expect(await read(emptyBody)).toEqual(malformed("The request has no body."))
    expect(await read(emptyBody, {})).toEqual(malformed("The request has no body."))
  })

  it("is as long as the limit, at most", async () => {
    const tooLarge = { _tag: "PayloadTooLarge", limit }
    expect(await read(bytes("{}".padEnd(limit)))).toEqual({})
    expect(await read(bytes("{}".padEnd(limit + 1)))).toEqual(tooLarge)
    expect(await read(tooLargeBody)).toEqual(tooLarge)
  })

  it("is read late if it is deferred, with the same result", async () => {
    const deferred = (body: ArrivedBody): Body => ({ _tag: "Deferred", read: async () => body })
    expect(await read(deferred(bytes('{"a":1}')))).toEqual({ a: 1 })
    expect(await read(deferred(bytes("[]")))).toEqual(noObject)
  })
})

describe("a body that the host has read", () => {
  it("needs no content type, but none other", async () => {
    expect(await read(parsed({ a: 1 }), {})).toEqual({ a: 1 })
    expect(await read(parsed({ a: 1 }))).toEqual({ a: 1 })
    expect(await read(parsed({ a: 1 }), { "content-type": "text/plain" })).toEqual(wrongType)
    expect(await read(parsed({ a: 1 }), { "content-encoding": "gzip" })).toEqual(encoded)
    const twice = { "content-type": ["application/json", "text/plain"] }
    expect(await read(parsed({ a: 1 }), twice)).toEqual(wrongType)
  })

  it("and not kept is refused", async () => {
    const notKept = "The body was read before it came to the API, and nothing of it was kept."
    expect(await read(consumedBody)).toEqual(malformed(notKept))
    expect(await read(consumedBody, { "content-type": "text/plain" })).toEqual(wrongType)
  })

  it("in part is refused with the reason", async () => {
    expect(await read(abortedBody)).toEqual(malformed("The body could not be read to its end."))
  })
})

it("a body that may be missing is an empty object then", async () => {
  const readOptional = readAs(optionalObject)
  expect(await readOptional(emptyBody)).toEqual({})
  expect(await readOptional(bytes('{"a":1}'))).toEqual({ a: 1 })
  expect(await readOptional(bytes("[]"))).toEqual(noObject)
})

describe("a body of which some fields are read", () => {
  const readSome = readAs(objectWith("a", "b"))

  it.each(['{"a":1,"a":1}', '{"a":"x","c":[],"a":"x"}', '{"b":{},"b":0}'])(
    "has them once, unlike %s",
    async (text) => {
      expect(await readSome(bytes(text))).toMatchObject({ _tag: "InvalidInput" })
    },
  )

  it.each([
    '{"a":1}',
    ' { "a" : "x" } ',
    '{"c":1,"c":2}',
    '{"c":{"a":1,"a":2}}',
    '{"a":12345678901234567890}',
  ])("has anything else in the others: %s", async (text) => {
    expect(await readSome(bytes(text))).toEqual(JSON.parse(text))
  })
})

describe("a body of lines", () => {
  const readLines = readAs(jsonLines)
  const lines: Headers = { "content-type": "application/x-ndjson" }

  it("is text in UTF-8, and may be empty", async () => {
    expect(await readLines(bytes("{}\n{"), lines)).toBe("{}\n{")
    expect(await readLines(emptyBody, {})).toBe("")
    const broken = new Uint8Array([0xff])
    expect(await readLines({ _tag: "Bytes", bytes: broken }, lines)).toEqual(
      malformed("The body is not valid UTF-8."),
    )
  })

  it("has the content type of JSON in lines", async () => {
    for (const type of ["Application/X-NDJSON", "application/x-ndjson \t; charset=utf-8"]) {
      expect(await readLines(bytes("{}"), { "content-type": type })).toBe("{}")
    }
    for (const type of ["application/json", "x-application/x-ndjson", "application/x-ndjsonp"]) {
      expect(await readLines(bytes("{}"), { "content-type": type })).toEqual(
        unsupported("The content type must be application/x-ndjson."),
      )
    }
  })

  it("is refused if the host has parsed it", async () => {
    expect(await readLines(parsed([{}]), lines)).toEqual(
      malformed("The body was parsed before it came to the API, which takes it as text or bytes."),
    )
  })
})

it("a field is read from the body's own properties, and named in its error", () => {
  const setting = Setting.string("text", (text) => text !== "")
  expect(readField({ a: "x" }, "a", setting)).toMatchObject({ success: "x" })
  const inherited: JsonObject = Object.create({ a: "x" })
  expect(readField(inherited, "a", setting)).toMatchObject({ failure: { field: "a" } })
})
