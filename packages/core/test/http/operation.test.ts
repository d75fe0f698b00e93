/** From a request to its operation's call: permission, project, query, body, and idempotency key. */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import { pageFields, plain } from "../../src/api/declaration.ts"
import type { ApiError } from "../../src/api/errors.ts"
import { digestOf, idempotencyKeyFormat } from "../../src/base/change-context.ts"
import { input } from "../../src/base/operation-input.ts"
import * as Setting from "../../src/base/setting.ts"
import { ApiKeyId, type ProjectId } from "../../src/base/values.ts"
import {
  type JsonObject,
  type BodyFormat,
  jsonLines,
  objectWith,
  optionalObject,
} from "../../src/http/body.ts"
import { performWithIdempotency } from "../../src/http/idempotency.ts"
import {
  type Call,
  bodyOf,
  decodePathParam,
  isoOrNull,
  makeDisclosureAudit,
  makeReader,
  mayUseProject,
  originOf,
  projectOf,
  readBody,
  requireAllProjects,
  sortedProjects,
} from "../../src/http/operation.ts"
import {
  type ApiRequest,
  type ArrivedBody,
  type Body,
  abortedBody,
  consumedBody,
  emptyBody,
  tooLargeBody,
} from "../../src/http/request.ts"
import { type Outcome, failOutcome } from "../../src/http/response.ts"
import {
  type Operation,
  type PathParams,
  type RouteMatch,
  makeRoutes,
} from "../../src/http/routes.ts"
import { type RoutedCall, preferProjectNotFound, routeRequest } from "../../src/http/routing.ts"
import { TokenDigest } from "../../src/keys/api-key.ts"
import { type Principal, anonymous } from "../../src/keys/identity.ts"
import { MembershipActs } from "../../src/memberships/membership-acts.ts"
import { test } from "../support/test.ts"

const utf8 = new TextEncoder()

const client: Principal = {
  keyId: ApiKeyId("a key"),
  role: "client",
  projects: new Set(["p2", "p1"]),
  isReadOnly: false,
}
const some: Principal = { ...client, role: "admin" }
const all: Principal = { ...some, projects: "all" }

const traceparent = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"

interface Given {
  readonly request?: Partial<ApiRequest>
  readonly principal?: Principal
  readonly params?: Partial<PathParams>
  readonly operation?: Operation
}

const callOf = (given: Given = {}) => ({
  operation: given.operation ?? "memberships.get",
  request: {
    method: "POST",
    path: "/v2/projects/p1/events",
    headers: {},
    body: emptyBody,
    remoteAddress: undefined,
    ...given.request,
  },
  requestId: "a request",
  principal: given.principal ?? some,
  params: {
    project_id: "p1",
    user_id: "1001",
    webhook_id: "",
    event_id: "",
    key_id: "",
    bulk_extension_id: "",
    ...given.params,
  },
})

const bytes = (text: string): ArrivedBody => ({ _tag: "Bytes", bytes: utf8.encode(text) })
const parsed = (value: unknown): ArrivedBody => ({ _tag: "Parsed", value })

const malformed = (message: string) => ({ _tag: "MalformedRequest", message }) as const
const malformedPath = malformed("The path is not percent-encoded correctly.")
const notFound = { _tag: "ProjectNotFound" } as const
const forbidden = { _tag: "Forbidden" } as const
const unauthorized = { _tag: "Unauthorized" } as const

describe("routing", () => {
  const { match } = makeRoutes("all")

  const webhooks: ApiRequest = {
    method: "POST",
    path: "/v2/projects/p1/integrations/webhooks",
    headers: {},
    body: emptyBody,
    remoteAddress: undefined,
  }
  const unknown = failOutcome(unauthorized)

  const routed = (
    parts: Partial<ApiRequest>,
    sender: Outcome<Principal> = Result.succeed(client),
    found: RouteMatch | undefined = match(parts.path ?? webhooks.path, ""),
  ) => routeRequest({ ...webhooks, ...parts }, "a request", sender, found)

  const errorOf = (...args: Parameters<typeof routed>) => {
    const outcome = routed(...args)
    return Result.isFailure(outcome) ? outcome.failure : undefined
  }

  it("leads to the operation of the method and the path", () => {
    expect(routed({})).toMatchObject({
      success: {
        operation: "webhooks.create",
        requestId: "a request",
        principal: client,
        params: { project_id: "p1" },
      },
    })
    expect(routed({ method: "GET" })).toMatchObject({ success: { operation: "webhooks.list" } })
  })

  it("of several errors answers the first: unreadable, path, key, method", () => {
    const path = "/v2/nothing"
    const method = "PUT"
    const unreadable = { body: abortedBody, path, method }
    expect(errorOf(unreadable, unknown)).toMatchObject({ _tag: "MalformedRequest" })
    expect(errorOf({ path, method }, unknown)).toEqual({ _tag: "RouteNotFound" })
    expect(errorOf({ method }, unknown)).toEqual(unauthorized)
    expect(errorOf({ method })).toEqual({ _tag: "MethodNotAllowed", allow: ["GET", "POST"] })
  })

  it.each(["get", "constructor", "__proto__", ""])("does not allow the method %j", (method) => {
    expect(errorOf({ method })).toMatchObject({ _tag: "MethodNotAllowed" })
  })

  const senderOf = (parts: Partial<Principal>) => Result.succeed({ ...client, ...parts })
  const publish = { path: "/v2/projects/p1/events" }

  it("lets a role call what smaller roles may", () => {
    expect(errorOf(publish)).toEqual(forbidden)
    for (const role of ["operator", "admin"] as const) {
      const success = { operation: "events.publish" }
      expect(routed(publish, senderOf({ role }))).toMatchObject({ success })
    }
  })

  it("lets who may change nothing read, and ask for a ticket", () => {
    const reader = senderOf({ role: "admin", isReadOnly: true })
    expect(errorOf({}, reader)).toEqual(forbidden)
    expect(errorOf({ method: "GET" }, reader)).toBeUndefined()
    expect(errorOf({ path: "/v2/realtime/tickets" }, reader)).toBeUndefined()
  })

  it("lets a sender without a key read the document, and nothing else", () => {
    const document = { method: "GET", path: "/v2/openapi.json" }
    expect(routed(document, unknown)).toMatchObject({
      success: { operation: "docs.document", principal: anonymous },
    })
    expect(errorOf({ ...document, method: "POST" }, unknown)).toEqual(unauthorized)
    expect(errorOf(publish, unknown)).toEqual(unauthorized)
  })

  it("lets a ticket follow the feed, and read the document", () => {
    const { keyId } = client
    const digest = TokenDigest("a digest")
    const ticket = { digest, keyId, keyDigest: undefined, projects: "all" } as const
    const holder = senderOf({ role: "admin", ticket })
    expect(routed({ ...publish, method: "GET" }, holder)).toMatchObject({
      success: { operation: "events.list" },
    })
    expect(errorOf({ method: "GET", path: "/v2/docs" }, holder)).toBeUndefined()
    expect(errorOf(publish, holder)).toEqual(unauthorized)
    expect(errorOf({ ...publish, method: "PUT" }, holder)).toEqual(unauthorized)
  })

  it("does not tell the methods of a path to who may call nothing there", () => {
    const keys = { method: "PUT", path: "/v2/api-keys" }
    expect(errorOf(keys)).toEqual(forbidden)
    expect(errorOf(keys, senderOf({ role: "admin", isReadOnly: true }))).toEqual({
      _tag: "MethodNotAllowed",
      allow: ["GET", "POST"],
    })
  })
})

describe("the projects of a sender", () => {
  it("are some, or all", () => {
    expect(["p1", "p3"].map((id) => mayUseProject(some, id))).toEqual([true, false])
    expect(["p1", "p3"].map((id) => mayUseProject(all, id))).toEqual([true, true])
    const sorted = [some, all].map(({ projects }) => sortedProjects(projects))
    expect(sorted).toEqual([["p1", "p2"], "all"])
  })

  test("must be all for what tells of all of them", function* () {
    expect(yield* Effect.flip(requireAllProjects(callOf()))).toEqual(forbidden)
    yield* requireAllProjects(callOf({ principal: all }))
  })
})

describe("the project of a path", () => {
  test.each<readonly [string, Principal, unknown]>([
    ["%70%31", some, "p1"],
    ["%", some, malformedPath],
    ["p3", some, notFound],
    ["p3", all, "p3"],
    ["%2e%2e", all, notFound],
  ])(
    "is decoded, and not found if it is of others or no id: %s",
    function* ([project_id, principal, expected]) {
      const result = yield* Effect.result(projectOf(callOf({ principal, params: { project_id } })))
      expect(Result.merge(result)).toEqual(expected)
    },
  )

  test("has parameters that are decoded", function* () {
    expect(yield* decodePathParam("a%2Fb")).toBe("a/b")
    expect(yield* Effect.flip(decodePathParam("%zz"))).toEqual(malformedPath)
  })
})

describe("a project that does not exist", () => {
  const missing = { _tag: "MembershipNotFound" } as const

  /** Returns a failing operation's error, and the projects looked up. */
  const judged = Effect.fnUntraced(function* (call: RoutedCall, error: ApiError, exists = false) {
    const found: Array<string> = []
    const find = ({ projectId }: { readonly projectId: ProjectId }) => {
      found.push(projectId)
      return exists ? Effect.void : Effect.fail(notFound)
    }
    return [yield* Effect.flip(preferProjectNotFound(call, Effect.fail(error), find)), found]
  })

  test.each<ApiError>([
    malformed("The request has no body."),
    missing,
    { _tag: "PayloadTooLarge", limit: 1 },
    { _tag: "UnsupportedMediaType", message: "" },
    { _tag: "IdempotencyMismatch" },
  ])("counts before %j, for those who may use all", function* (error) {
    const call = callOf({ principal: all })
    expect(yield* judged(call, error)).toEqual([notFound, ["p1"]])
    expect(yield* judged(call, error, true)).toEqual([error, ["p1"]])
    expect(yield* judged(callOf(), error)).toEqual([error, []])
  })

  test.each<readonly [string, ApiError, Given]>([
    ["it is the error", notFound, {}],
    ["the sender may not ask", forbidden, {}],
    ["the server has a defect", { _tag: "InternalError" }, {}],
    ["there is none in the path", missing, { params: { project_id: "" } }],
    ["it is created", missing, { operation: "projects.create" }],
  ])("is not looked up if %s", function* ([, error, given]) {
    expect(yield* judged(callOf({ principal: all, ...given }), error)).toEqual([error, []])
  })

  test("is not looked up for an operation that succeeds, nor for a path that cannot be read", function* () {
    const call = callOf({ principal: all })
    const never = () => Effect.fail(notFound)
    expect(yield* preferProjectNotFound(call, Effect.succeed(7), never)).toBe(7)
    const broken = callOf({ principal: all, params: { user_id: "%" } })
    expect(yield* judged(broken, missing)).toEqual([malformedPath, []])
  })
})

describe("the audit trail", () => {
  const call = callOf({ request: { headers: { traceparent } } })
  const origin = { requestId: "a request", keyId: "a key", traceparent }

  test("keeps the key, the request, its trace, and who was shown a secret of theirs", function* () {
    expect(originOf(call)).toEqual(origin)
    const kept: Array<unknown> = []
    const recordShown = (...shown: ReadonlyArray<unknown>) =>
      Effect.sync(() => void kept.push(shown))
    const audit = yield* Effect.provide(
      makeDisclosureAudit,
      Layer.mock(MembershipActs)({ recordShown }),
    )
    yield* audit(call, "data_shown", "an event")
    const foreign = audit(callOf({ params: { project_id: "p3" } }), "data_shown", "an event")
    expect(yield* Effect.flip(foreign)).toEqual(notFound)
    expect(kept).toEqual([
      [
        { projectId: "p1", action: "data_shown", subject: "an event" },
        { origin, at: 0 },
      ],
    ])
  })
})

it("a time is shown in the format of the API, and a missing one as null", () => {
  expect([0, undefined].map(isoOrNull)).toEqual(["1970-01-01T00:00:00.000Z", null])
})

describe("the query of a request", () => {
  const parameters = input(
    {},
    {
      ...pageFields,
      state: Setting.optional(Setting.oneOf(["active", "expired"])),
      ticket: Setting.optional(Setting.string("a ticket", () => true)),
    },
  )
  const declared = {
    method: "GET",
    pattern: "/v2/things",
    role: "client",
    input: parameters,
    reply: plain("The things."),
    errors: [],
  } as const

  const read = (query?: string) =>
    Effect.runSync(
      Effect.result(makeReader(declared, parameters, 100)(callOf({ request: { query } }))),
    )

  it.each([
    [undefined, { limit: 100, after: undefined, state: undefined, ticket: undefined }],
    ["", { limit: 100, after: undefined, state: undefined, ticket: undefined }],
    [
      "after=a%20b+c&limit=1000&state=expired&ticket=tkt_%2B",
      { limit: 1000, after: "a b c", state: "expired", ticket: "tkt_+" },
    ],
  ])("is decoded, with defaults: %s", (query, values) => {
    expect(read(query)).toMatchObject({ success: values })
  })

  it.each([
    ["limit=0", /^limit must be a whole number from 1 to 1,000/],
    ["limit=1001", /^limit /],
    ["limit=1e2", /^limit /],
    ["limit=", /^limit /],
    ["state=gone", /^state must be one of "active", "expired"/],
    ["state=active&state=active", /^state was sent more than once/],
    ["offset=1", /^offset is unknown/],
    ["__proto__=1", /^__proto__ is unknown/],
    ["constructor", /^constructor is unknown/],
  ])("is refused as %s, naming the parameter", (query, message) => {
    expect(read(query)).toMatchObject({ failure: { message: expect.stringMatching(message) } })
  })
})

type Headers = ApiRequest["headers"]

const json: Headers = { "content-type": "application/json" }

describe("the body of a request", () => {
  const limit = 100

  /** Reads a body; returns it, or the error. */
  const readAs =
    (format: BodyFormat<JsonObject | string> | undefined) =>
    (body: Body, headers = json): Promise<unknown> => {
      const call = callOf({ request: { body, headers } })
      const reading: Effect.Effect<unknown, ApiError> =
        format === undefined ? bodyOf(call, limit) : readBody(call, limit, format)
      return Effect.runPromise(Effect.map(Effect.result(reading), Result.merge))
    }

  const read = readAs(undefined)

  const unsupported = (message: string) => ({ _tag: "UnsupportedMediaType", message })
  const wrongType = unsupported("The content type must be application/json.")
  const encoded = unsupported("The body must be sent without a content encoding.")
  const notJson = malformed("The body is not valid JSON.")
  const noObject = malformed("The body must be a JSON object.")
  const noBody = malformed("The request has no body.")
  const tooLarge = { _tag: "PayloadTooLarge", limit }
  const invalidA = expect.objectContaining({ _tag: "InvalidInput", field: "a" })

  it.each([
    "application/json",
    "application/json;charset=utf-8",
    "Application/JSON ; charset=utf-8",
    "application/json\t  ;x",
  ])("is read with the content type %j", async (type) => {
    expect(await read(bytes('{"a":1}'), { "content-type": type })).toEqual({ a: 1 })
  })

  it.each<Headers>([
    {},
    { "content-type": "" },
    { "content-type": "text/plain" },
    { "content-type": "x-application/json" },
    { "content-type": "application/jsonp" },
    { "content-type": "application/json, text/plain" },
    { "content-type": ["application/json", "application/json"] },
  ])("is refused with %j", async (headers) => {
    for (const text of ["{}", "{"]) expect(await read(bytes(text), headers)).toEqual(wrongType)
  })

  it.each([
    ["identity", {}],
    ["IDENTITY", {}],
    ["gzip", encoded],
    ["identity, gzip", encoded],
    ["x-identity", encoded],
    [["identity", "identity"], encoded],
  ])("has no content encoding: %j", async (encoding, expected) => {
    expect(await read(bytes("{}"), { ...json, "content-encoding": encoding })).toEqual(expected)
  })

  it.each(["null", "[]", "7", '"text"', "true"])("is an object, and not %s", async (text) => {
    expect(await read(bytes(text))).toEqual(noObject)
    expect(await read(parsed(JSON.parse(text)))).toEqual(noObject)
  })

  const deferred = (body: ArrivedBody): Body => ({ _tag: "Deferred", read: async () => body })
  const brokenText = utf8.encode('{"a":"ü"}').filter((byte) => byte !== 0xc3)

  it.each<readonly [string, Body, unknown]>([
    ["has a byte order mark, which is ignored", bytes('\uFEFF{"a":"ü"}'), { a: "ü" }],
    ["is no JSON", bytes("{"), notJson],
    ["is not in UTF-8", { _tag: "Bytes", bytes: brokenText }, notJson],
    ["has a field twice", bytes('{"a":1,"a":2}'), invalidA],
    ["has a number that floating point cannot hold", bytes('{"a":12345678901234567890}'), invalidA],
    ["is as long as the limit", bytes("{}".padEnd(limit)), {}],
    ["is longer than the limit", bytes("{}".padEnd(limit + 1)), tooLarge],
    ["is too long to be read", tooLargeBody, tooLarge],
    ["is read late", deferred(bytes('{"a":1}')), { a: 1 }],
    ["is read late, and no object", deferred(bytes("[]")), noObject],
    ["is parsed as nothing", parsed(undefined), noObject],
    ["was read in part", abortedBody, malformed("The body could not be read to its end.")],
  ])("is what is expected, or refused, if it %s", async (_, body, expected) => {
    expect(await read(body)).toEqual(expected)
  })

  it("is missing if it is empty, whatever its type", async () => {
    for (const headers of [json, {}]) expect(await read(emptyBody, headers)).toEqual(noBody)
  })

  it.each<readonly [Headers, unknown]>([
    [{}, { a: 1 }],
    [json, { a: 1 }],
    [{ "content-type": "text/plain" }, wrongType],
    [{ "content-encoding": "gzip" }, encoded],
    [{ "content-type": ["application/json", "text/plain"] }, wrongType],
  ])(
    "that the host has read needs no content type, but none other: %j",
    async (headers, expected) => {
      expect(await read(parsed({ a: 1 }), headers)).toEqual(expected)
    },
  )

  it("that the host has read and not kept is refused", async () => {
    const notKept = "The body was read before it came to the API, and nothing of it was kept."
    expect(await read(consumedBody)).toEqual(malformed(notKept))
    expect(await read(consumedBody, { "content-type": "text/plain" })).toEqual(wrongType)
  })

  it("that may be missing is an empty object then", async () => {
    const readOptional = readAs(optionalObject)
    expect(await readOptional(emptyBody)).toEqual({})
    expect(await readOptional(bytes('{"a":1}'))).toEqual({ a: 1 })
    expect(await readOptional(bytes("[]"))).toEqual(noObject)
  })

  it.each(['{"a":1,"a":1}', '{"a":"x","c":[],"a":"x"}', '{"b":{},"b":0}'])(
    "of which some fields are read has them once, unlike %s",
    async (text) => {
      const invalid = { _tag: "InvalidInput" }
      expect(await readAs(objectWith("a", "b"))(bytes(text))).toMatchObject(invalid)
    },
  )

  it.each([
    '{"a":1}',
    ' { "a" : "x" } ',
    '{"c":1,"c":2}',
    '{"c":{"a":1,"a":2}}',
    '{"a":12345678901234567890}',
  ])("of which some fields are read has anything else in the others: %s", async (text) => {
    expect(await readAs(objectWith("a", "b"))(bytes(text))).toEqual(JSON.parse(text))
  })

  const lines = "application/x-ndjson"
  const wrongLines = unsupported("The content type must be application/x-ndjson.")
  const notText = "The body was parsed before it came to the API, which takes it as text or bytes."

  it.each<readonly [string, Body, string | undefined, unknown]>([
    ["anything", bytes("{}\n{"), lines, "{}\n{"],
    ["nothing", emptyBody, undefined, ""],
    ["a type in upper case", bytes("{}"), "Application/X-NDJSON", "{}"],
    ["a type with a parameter", bytes("{}"), `${lines} \t; charset=utf-8`, "{}"],
    ["JSON", bytes("{}"), "application/json", wrongLines],
    ["a type that ends so", bytes("{}"), `x-${lines}`, wrongLines],
    ["a type that begins so", bytes("{}"), `${lines}p`, wrongLines],
    ["what the host has parsed", parsed([{}]), lines, malformed(notText)],
    [
      "what is no UTF-8",
      { _tag: "Bytes", bytes: new Uint8Array([0xff]) },
      lines,
      malformed("The body is not valid UTF-8."),
    ],
  ])("of lines is text of its own type: %s", async (_, body, type, expected) => {
    const headers = type === undefined ? {} : { "content-type": type }
    expect(await readAs(jsonLines)(body, headers)).toEqual(expected)
  })
})

describe("an idempotency key", () => {
  const withKey = (field: string | ReadonlyArray<string>) => ({
    headers: { "idempotency-key": field },
  })

  /** Returns a request with an idempotency key, by default in its principal's project. */
  const keyed = (request: Partial<ApiRequest> = {}, project_id = "p1"): Call =>
    callOf({ request: { ...withKey("a"), ...request }, params: { project_id } })

  /** Performs a call. Returns its outcome, and the calls passed to the operation. */
  const perform = async (call: Call, isKnown = false) => {
    const performed: Array<Call> = []
    const performing = performWithIdempotency(call, (inner) =>
      Effect.sync(() => {
        performed.push(inner)
        if (isKnown) inner.idempotency?.onReplay?.()
        return { message: "Done.", data: null }
      }),
    )
    return { outcome: await Effect.runPromise(Effect.result(performing)), performed }
  }

  const onceOf = async (request: Partial<ApiRequest>) =>
    (await perform(keyed(request))).performed[0]?.idempotency

  it.each([
    ["a", "a"],
    ['"a"', "a"],
    ['"a\\"b\\\\c"', 'a"b\\c'],
    ['a"b\\c', 'a"b\\c'],
    ["x".repeat(255), "x".repeat(255)],
  ])("is known by its digest: %s", async (field, key) => {
    expect(await onceOf(withKey(field))).toMatchObject({ owner: "a key", key: digestOf(key) })
  })

  const invalid = ["", '""', '"a', '"a"b"', '"a\\', '"a\\b"', '"a"b', "a b", "ü", "x".repeat(256)]

  it.each([...invalid, ["a", "a"]])("is refused as %j", async (field) => {
    const message = `The Idempotency-Key header must be sent once, and be ${idempotencyKeyFormat}, with or without quotation marks.`
    expect(await perform(keyed(withKey(field)))).toMatchObject({
      outcome: { failure: malformed(message) },
      performed: [],
    })
  })

  it("means nothing to a request that reads, or that only inherits it", async () => {
    const inherited: Headers = Object.create(withKey("a").headers)
    for (const request of [{ method: "GET", ...withKey("") }, { headers: inherited }]) {
      const call = keyed(request)
      expect((await perform(call)).performed).toEqual([call])
    }
  })

  it("tells whether a request was answered before", async () => {
    const result = { message: "Done.", data: null }
    const first = await perform(keyed())
    expect(first.outcome).toEqual(expect.objectContaining({ success: result }))
    const again = await perform(keyed(), true)
    expect(again.outcome).toMatchObject({ success: { ...result, isReplay: true } })
  })

  const fingerprintOf = async (request: Partial<ApiRequest>) => (await onceOf(request))?.fingerprint

  it("is of one method, path, query and body", async () => {
    const requests: ReadonlyArray<Partial<ApiRequest>> = [
      {},
      withKey("b"),
      { method: "PATCH" },
      { path: "/v2/projects/p1/event" },
      { query: "a" },
      { query: "b" },
      { body: bytes("{}") },
      { body: bytes('{"a":1}') },
      { body: bytes('{"a":2}') },
    ]
    const fingerprints = await Promise.all(requests.map(fingerprintOf))
    expect(new Set(fingerprints).size).toBe(requests.length)
    expect(await Promise.all(requests.map(fingerprintOf))).toEqual(fingerprints)
  })

  const endless: Array<unknown> = []
  endless.push(endless)
  const late: Body = { _tag: "Deferred", read: async () => parsed({ a: 1 }) }

  it.each<readonly [string, Partial<ApiRequest>, Partial<ApiRequest>]>([
    ["an empty query is none", { query: "" }, {}],
    ["the host has read the body", { body: parsed({ a: 1 }) }, { body: bytes('{"a":1}') }],
    ["the body is read late", { body: late }, { body: bytes('{"a":1}') }],
    ["the body is not known", { body: consumedBody }, {}],
    ["the body cannot be written", { body: parsed(endless) }, {}],
  ])("is of the same request if %s", async (_, one, other) => {
    expect(await fingerprintOf(one)).toBe(await fingerprintOf(other))
  })

  it("has the body read once before the operation, and not for the project of another", async () => {
    let reads = 0
    const read = async () => {
      reads++
      return consumedBody
    }
    const body: Body = { _tag: "Deferred", read }
    const foreign = await perform(keyed({ ...withKey(""), body }, "p3"))
    expect(foreign.outcome).toMatchObject({ failure: notFound })
    expect(reads).toBe(0)
    const call = keyed({ body }, "")
    const { performed } = await perform(call)
    expect(performed[0]?.request).toEqual({ ...call.request, body: consumedBody })
    expect(reads).toBe(1)
  })
})
