import { memory } from "@tenure/memory"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { type AccessRecord, Handler } from "../../src/http/handler.ts"
import { type ApiRequest, type Body, emptyBody } from "../../src/http/request.ts"
import { ApiKeys } from "../../src/keys/api-keys.ts"
import { ApiKeyStore } from "../../src/keys/store.ts"
import { RateLimitStore } from "../../src/limits/buckets.ts"
import { Memberships } from "../../src/memberships/memberships.ts"
import { MembershipStore } from "../../src/memberships/store.ts"
import { type TenureOptions, tenureLayer } from "../../src/tenure.ts"
import { test } from "../support/test.ts"

const now = Date.parse("2026-06-01T00:00:00.000Z")
const extendOne = "/v2/projects/p1/memberships/1001/extend"
const list = { method: "GET", path: "/v2/projects/p1/integrations/webhooks" }
const utf8 = new TextEncoder()

const json = (value: unknown): Body => ({
  _tag: "Bytes",
  bytes: utf8.encode(JSON.stringify(value)),
})

const extension = { body: json({ extend: now + 1 }) }

type Failing = () => Effect.Effect<never, StoreUnavailable>

/** Effects that replace store operations, and the number of key lookups. */
interface Fault {
  finds: number
  extend?: Failing
  findKey?: Failing
  take?: Failing
}

const down: Failing = () => Effect.fail(new StoreUnavailable({ cause: "secret of the store" }))

/** Returns memory stores with operations a test can make fail. */
const faultyStores = (fault: Fault) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const memberships = yield* MembershipStore
      const apiKeys = yield* ApiKeyStore
      const limits = yield* RateLimitStore
      return Context.make(MembershipStore, {
        ...memberships,
        extend: (change) => fault.extend?.() ?? memberships.extend(change),
      }).pipe(
        Context.add(ApiKeyStore, {
          ...apiKeys,
          find: (digest) => {
            fault.finds++
            return fault.findKey?.() ?? apiKeys.find(digest)
          },
        }),
        Context.add(RateLimitStore, {
          ...limits,
          take: (...asked) => fault.take?.() ?? limits.take(...asked),
        }),
      )
    }),
  ).pipe(Layer.provideMerge(memory()))

/** Returns a handler at a fixed time, with a project, a membership, a key, and the log with its causes. */
const handlerWith = Effect.fnUntraced(function* (options: TenureOptions = {}) {
  yield* TestClock.setTime(now)
  const fault: Fault = { finds: 0 }
  const logged: Array<string> = []
  const logger = Logger.make(({ cause, message }) => {
    logged.push(`${String(message)} ${String(cause)}`)
  })
  const services = yield* Layer.build(
    tenureLayer({ expiry: false, ...options }).pipe(
      Layer.provide(faultyStores(fault)),
      Layer.provideMerge(Logger.layer([logger])),
    ),
  )
  const { handle, owns } = Context.get(services, Handler)
  const memberships = Context.get(services, Memberships)
  yield* memberships.createProject("p1")
  const endDate = "2026-01-01T00:00:00.000Z"
  yield* memberships.grant({ projectId: "p1", userId: "1001", endDate })
  const apiKeys = Context.get(services, ApiKeys)
  const { id, token } = yield* apiKeys.issue({ projects: ["p1"] })
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
  const request = Effect.fnUntraced(function* (given: Partial<ApiRequest>) {
    const { body, ...response } = yield* handle({
      method: "PATCH",
      path: extendOne,
      headers,
      body: emptyBody,
      remoteAddress: "203.0.113.7",
      ...given,
    })
    return { ...response, body: JSON.parse(String(body)) }
  }, Effect.provideContext(services))
  /** Sends requests one after another. Returns the response statuses. */
  const statuses = (requests: ReadonlyArray<Partial<ApiRequest>>) =>
    Effect.forEach(requests, (given) => Effect.map(request(given), ({ status }) => status))
  return { fault, headers, keyId: id, logged, memberships, owns, request, statuses, token }
})

test("header fields have names in any case", function* () {
  const { statuses, token } = yield* handlerWith()
  const headers = { Authorization: `Bearer ${token}`, "CONTENT-TYPE": "application/json" }
  const twice = { ...headers, authorization: `Bearer ${token}` }
  const requests = [headers, twice].map((fields) => ({ ...extension, headers: fields }))
  expect(yield* statuses(requests)).toEqual([200, 400])
})

describe("a request is answered 503 with Retry-After, and with nothing that the store has said", () => {
  const unavailable = (limit: string, remaining: string) => ({
    status: 503,
    headers: {
      "Retry-After": "5",
      "X-RateLimit-Limit": limit,
      "X-RateLimit-Remaining": remaining,
    },
    body: { ok: false, code: 503, error: { error_code: "SERVICE_UNAVAILABLE" } },
  })

  test.each([
    ["memberships", "extend", unavailable("100", "99")],
    ["API keys", "findKey", unavailable("300", "299")],
    ["rate limits, which must be there", "take", unavailable("100", "0")],
  ])("while the store of %s is unavailable", function* ([, operation, expected]) {
    const { fault, request } = yield* handlerWith({ rateLimits: { onStoreFailure: "closed" } })
    fault[operation] = down
    const response = yield* request(extension)
    expect(response).toMatchObject(expected)
    expect(JSON.stringify(response)).not.toContain("secret")
    if (operation === "findKey") expect((yield* request({ headers: {} })).status).toBe(401)
    delete fault[operation]
    expect((yield* request(extension)).status).toBe(200)
  })
})

test("a defect is answered 500 without details, which are logged", function* () {
  const { fault, logged, request } = yield* handlerWith()
  fault.extend = () => Effect.die(new Error("a bug with a secret in it"))
  const response = yield* request(extension)
  expect(response).toMatchObject({
    status: 500,
    headers: { "X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "99" },
    body: { ok: false, code: 500, error: { error_code: "INTERNAL_ERROR" } },
  })
  expect(JSON.stringify(response)).not.toContain("bug")
  expect(logged.join()).toContain("a bug with a secret in it")
})

test("an error of a client is not logged", function* () {
  const { logged, statuses } = yield* handlerWith()
  const answered = yield* statuses([
    { body: { _tag: "Bytes", bytes: utf8.encode("{") } },
    { body: json({ extend: 1 }) },
    { headers: {} },
    { path: "/v2/projects/%/memberships/extend" },
    { method: "constructor" },
    { body: { _tag: "TooLarge" } },
    { body: { _tag: "Unreadable", error: { _tag: "RequestTimeout" } } },
  ])
  expect(answered).toEqual([400, 422, 401, 400, 405, 413, 408])
  expect(logged).toEqual([])
})

test("the access record has what an access log needs, and no token, ticket or query", function* () {
  const records: Array<AccessRecord> = []
  const onResponse = (record: AccessRecord) => void records.push(record)
  const { keyId, request, token } = yield* handlerWith({ onResponse })
  const { body } = yield* request(extension)
  const remoteAddress = "2001:db8::1"
  yield* request({ headers: { authorization: "Bearer wrong" }, remoteAddress })
  const path = "/v2/projects/p1/events"
  yield* request({ method: "GET", path, query: "ticket=tkt_secret", headers: {} })
  expect(records).toEqual([
    {
      requestId: body.request_id,
      method: "PATCH",
      path: extendOne,
      status: 200,
      durationMillis: 0,
      address: "203.0.113.7",
      keyId,
    },
    expect.objectContaining({ status: 401, address: "2001:db8:0:0::/64", keyId: undefined }),
    expect.objectContaining({ path }),
  ])
  const written = JSON.stringify(records)
  for (const secret of [token, "wrong", "tkt_"]) expect(written).not.toContain(secret)
})

test("paths are those of the API after the base path", function* () {
  const { owns } = yield* handlerWith({ basePath: "/api/" })
  expect([`/api${extendOne}`, extendOne, "/api"].map(owns)).toEqual([true, false, false])
})

test("the fields of the IETF draft are in responses if the host wants them", function* () {
  const plain = yield* (yield* handlerWith()).request(list)
  expect(Object.keys(plain.headers).filter((name) => name.startsWith("RateLimit"))).toEqual([])
  const { request } = yield* handlerWith({ rateLimits: { draftFields: true } })
  expect((yield* request(list)).headers).toMatchObject({
    "RateLimit-Policy": '"key";q=100;w=60, "burst";q=20;w=1, "address";q=300;w=60',
    RateLimit: expect.stringMatching(/^"key";r=99;t=1;pk=:[\w+/]{8}:$/),
  })
})

describe("an address that is refused", () => {
  const oneADay = { limit: 1, window: "1 day" } as const

  test("costs no look-up: 5,000 guesses cost at most as many as are admitted", function* () {
    const { fault, statuses } = yield* handlerWith()
    const guesses = Array.from({ length: 5000 }, (_, guess) => ({
      headers: { authorization: `Bearer guess-${guess}` },
    }))
    const answered = yield* statuses(guesses)
    expect(answered.filter((status) => status === 401)).toHaveLength(300)
    expect(answered.filter((status) => status === 429)).toHaveLength(4700)
    expect(fault.finds).toBe(300)
  })

  test("still reports the limits of a key that is cached", function* () {
    const perAddress = { limit: 2, window: "1 day" } as const
    const { request } = yield* handlerWith({ rateLimits: { perKey: oneADay, perAddress } })
    yield* request(list)
    yield* request({ ...list, headers: {} })
    const stranger = yield* request({ ...list, headers: {} })
    expect(stranger.headers).toMatchObject({ "X-RateLimit-Limit": "2" })
    const holder = yield* request(list)
    expect(holder.headers).toMatchObject({ "X-RateLimit-Limit": "1", "Retry-After": "86400" })
  })

  test("does not ask the host's authentication", function* () {
    let asked = 0
    const authenticate = () => {
      asked++
      return { keyId: "u1", projects: ["p1"] }
    }
    const { request, statuses } = yield* handlerWith({
      authenticate,
      rateLimits: { perAddress: oneADay },
    })
    yield* request({})
    expect(yield* statuses([{}, { authenticate }])).toEqual([429, 429])
    expect(asked).toBe(1)
  })
})

describe("the id of a request", () => {
  const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/

  test("is new if no header is named, or if it is invalid there", function* () {
    const plain = yield* handlerWith()
    const { request } = yield* handlerWith({ requestIdHeader: "X-Request-Id" })
    const idOf = (id: string | ReadonlyArray<string> | undefined, send = request) =>
      Effect.map(send({ ...list, headers: { "x-request-id": id } }), ({ body }) => body.request_id)
    expect(yield* idOf("a-1", plain.request)).toMatch(uuid)
    for (const id of ["a", "Root=1-67891233-abcdef012345678912345678", "~".repeat(128)]) {
      expect(yield* idOf(id)).toBe(id)
    }
    for (const other of ["", " ", "a b", "ü", "a\n", "~".repeat(129), ["a", "b"], undefined]) {
      expect(yield* idOf(other)).toMatch(uuid)
    }
  })

  test("is in the audit trail, and in the record of the response", function* () {
    const records: Array<AccessRecord> = []
    const { headers, memberships, request } = yield* handlerWith({
      requestIdHeader: "x-request-id",
      onResponse: (record) => void records.push(record),
    })
    yield* request({ ...extension, headers: { ...headers, "x-request-id": "a-1" } })
    const [row] = yield* memberships.history({ projectId: "p1", userId: "1001" })
    expect(row?.origin.requestId).toBe("a-1")
    expect(records.map(({ requestId }) => requestId)).toEqual(["a-1"])
  })

  test.each([
    [{}, { type: "string", format: "uuid" }],
    [{ requestIdHeader: "x-request-id" }, { type: "string", maxLength: 128 }],
  ])("is described in the document as what it may be: %j", function* ([options, schema]) {
    const { request } = yield* handlerWith(options)
    const { body } = yield* request({ method: "GET", path: "/v2/openapi.json", headers: {} })
    const { description: _, ...described } = body.components.schemas.RequestId
    expect(described).toMatchObject(schema)
    expect("format" in described).toBe("format" in schema)
  })
})
