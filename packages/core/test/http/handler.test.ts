import { describe, expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { TestClock } from "effect/testing"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { type AccessRecord, Handler } from "../../src/http/handler.ts"
import { type ApiRequest, type Body, emptyBody } from "../../src/http/request.ts"
import { ApiKeys } from "../../src/keys/api-keys.ts"
import { ApiKeyStore } from "../../src/keys/store.ts"
import { RateLimitStore } from "../../src/limits/buckets.ts"
import { Memberships } from "../../src/memberships/memberships.ts"
import { MembershipStore } from "../../src/memberships/store.ts"
import { type Services, type TenureOptions, tenureLayer } from "../../src/tenure.ts"

const now = Date.parse("2026-06-01T00:00:00.000Z")
const extendOne = "/v2/projects/p1/memberships/1001/extend"
const utf8 = new TextEncoder()

const json = (value: unknown): Body => ({
  _tag: "Bytes",
  bytes: utf8.encode(JSON.stringify(value)),
})

type Failing = () => Effect.Effect<never, StoreUnavailable>

/** What the stores do in the place of an operation, and how often they are asked for a key. */
interface Fault {
  finds: number
  extend?: Failing
  findKey?: Failing
  take?: Failing
}

const down: Failing = () => Effect.fail(new StoreUnavailable({ cause: "secret of the store" }))

/** Memory stores whose operations a test can make fail. */
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

interface Running {
  readonly token: string
  readonly request: (request: Partial<ApiRequest>) => Effect.Effect<
    {
      readonly status: number
      readonly headers: Readonly<Record<string, string>>
      readonly body: unknown
    },
    never,
    Handler
  >
  /** All log messages, with their causes. */
  readonly logged: ReadonlyArray<string>
  readonly fault: Fault
}

/** Runs a test with a project, a membership and a key, at a fixed time. */
const handling = <A, E>(
  test: (running: Running) => Effect.Effect<A, E, Services>,
  options: TenureOptions = {},
) => {
  const fault: Fault = { finds: 0 }
  const logged: Array<string> = []
  const logger = Logger.make(({ cause, message }) => {
    logged.push(`${String(message)} ${String(cause)}`)
  })
  return Effect.gen(function* () {
    yield* TestClock.setTime(now)
    const memberships = yield* Memberships
    yield* memberships.createProject("p1")
    yield* memberships.grant({
      projectId: "p1",
      userId: "1001",
      endDate: "2026-01-01T00:00:00.000Z",
    })
    const { token } = yield* (yield* ApiKeys).issue({ projects: ["p1"] })
    const request: Running["request"] = Effect.fnUntraced(function* (given) {
      const { handle } = yield* Handler
      const { body, ...response } = yield* handle({
        method: "PATCH",
        path: extendOne,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: emptyBody,
        remoteAddress: "203.0.113.7",
        ...given,
      })
      return { ...response, body: JSON.parse(String(body)) }
    })
    return yield* test({ token, request, logged, fault })
  }).pipe(
    Effect.provide(Layer.provide(tenureLayer({ expiry: false, ...options }), faultyStores(fault))),
    Effect.provide(Logger.layer([logger])),
  )
}

it.effect("header fields have names in any case", () =>
  handling(({ request, token }) =>
    Effect.gen(function* () {
      const headers = { Authorization: `Bearer ${token}`, "CONTENT-TYPE": "application/json" }
      const body = json({ extend: now + 1 })
      expect((yield* request({ headers, body })).status).toBe(200)
      const twice = { ...headers, authorization: `Bearer ${token}` }
      expect((yield* request({ headers: twice, body })).status).toBe(400)
    }),
  ),
)

describe("the future rule", () => {
  it.effect("accepts an end date from one millisecond after the clock", () =>
    handling(({ request }) =>
      Effect.gen(function* () {
        const statuses = yield* Effect.forEach([now - 1, now, now + 1], (extend) =>
          Effect.map(request({ body: json({ extend }) }), ({ status }) => status),
        )
        expect(statuses).toEqual([422, 422, 200])
      }),
    ),
  )
})

describe("a body that the host has already parsed", () => {
  it.effect("is used as it is, if it is an object", () =>
    handling(({ request }) =>
      Effect.gen(function* () {
        const parsed = (value: unknown) => request({ body: { _tag: "Parsed", value }, headers: {} })
        expect((yield* parsed({ extend: now + 1 })).status).toBe(401)
        const withKey = (value: unknown) => request({ body: { _tag: "Parsed", value } })
        expect((yield* withKey({ extend: now + 1 })).status).toBe(200)
        expect((yield* withKey({})).status).toBe(422)
        for (const value of [undefined, null, "text", 7, []]) {
          expect((yield* withKey(value)).status).toBe(400)
        }
      }),
    ),
  )
})

describe("while the store is unavailable", () => {
  it.effect("requests are answered 503 with Retry-After", () =>
    handling(({ fault, request }) =>
      Effect.gen(function* () {
        const body = json({ extend: now + 1 })
        fault.extend = down
        const response = yield* request({ body })
        expect(response).toMatchObject({
          status: 503,
          headers: { "Retry-After": "5", "X-RateLimit-Remaining": "99" },
          body: { ok: false, code: 503, error: { error_code: "SERVICE_UNAVAILABLE" } },
        })
        expect(JSON.stringify(response)).not.toContain("secret")
        delete fault.extend
        expect((yield* request({ body })).status).toBe(200)
      }),
    ),
  )
})

describe("while the store of API keys is unavailable", () => {
  it.effect("requests with a token are answered 503, and requests without one 401", () =>
    handling(({ fault, request }) =>
      Effect.gen(function* () {
        fault.findKey = down
        const response = yield* request({ body: json({ extend: now + 1 }) })
        expect(response).toMatchObject({
          status: 503,
          headers: { "Retry-After": "5", "X-RateLimit-Limit": "300" },
          body: { ok: false, error: { error_code: "SERVICE_UNAVAILABLE" } },
        })
        expect((yield* request({ headers: {} })).status).toBe(401)
      }),
    ),
  )
})

describe("while the store of rate limits is unavailable", () => {
  const body = json({ extend: now + 1 })
  const faults = [
    ["fails", down],
    ["has a defect", () => Effect.die(new Error("a bug"))],
  ] as const

  it.effect.each(faults)("or %s, this process keeps the limits", ([_name, take]) =>
    handling(({ fault, request }) =>
      Effect.gen(function* () {
        fault.take = take
        const responses = yield* Effect.forEach(Array.from({ length: 21 }), () => request({ body }))
        expect(responses.map(({ status }) => status)).toEqual([
          ...Array.from({ length: 20 }, () => 200),
          429,
        ])
        expect(responses[0]?.headers["X-RateLimit-Remaining"]).toBe("99")
      }),
    ),
  )

  it.effect.each(faults)(
    'or %s, requests are answered 503 with onStoreFailure: "closed"',
    ([_name, take]) =>
      handling(
        ({ fault, request }) =>
          Effect.gen(function* () {
            fault.take = take
            expect(yield* request({ body })).toMatchObject({
              status: 503,
              headers: {
                "Retry-After": "5",
                "X-RateLimit-Limit": "100",
                "X-RateLimit-Remaining": "0",
              },
              body: { ok: false, error: { error_code: "SERVICE_UNAVAILABLE" } },
            })
          }),
        { rateLimits: { onStoreFailure: "closed" } },
      ),
  )

  it.effect.each(faults)(
    'or %s, requests are not limited with onStoreFailure: "open"',
    ([_name, take]) =>
      handling(
        ({ fault, request }) =>
          Effect.gen(function* () {
            fault.take = take
            const all = yield* Effect.forEach(Array.from({ length: 150 }), () => request({ body }))
            expect(new Set(all.map(({ status }) => status))).toEqual(new Set([200]))
          }),
        { rateLimits: { onStoreFailure: "open" } },
      ),
  )
})

describe("a defect", () => {
  it.effect("is answered 500 without details, which are logged", () =>
    handling(({ fault, logged, request }) =>
      Effect.gen(function* () {
        fault.extend = () => Effect.die(new Error("a bug with a secret in it"))
        const response = yield* request({ body: json({ extend: now + 1 }) })
        expect(response).toMatchObject({
          status: 500,
          headers: { "X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "99" },
          body: { ok: false, code: 500, error: { error_code: "INTERNAL_ERROR" } },
        })
        expect(JSON.stringify(response)).not.toContain("bug")
        expect(logged.join()).toContain("a bug with a secret in it")
      }),
    ),
  )
})

describe("an error of a client", () => {
  it.effect("is not logged", () =>
    handling(({ logged, request }) =>
      Effect.gen(function* () {
        const broken: Body = { _tag: "Bytes", bytes: utf8.encode("{") }
        const wrong: ReadonlyArray<Partial<ApiRequest>> = [
          { body: broken },
          { body: json({ extend: 1 }) },
          { headers: {} },
          { path: "/v2/projects/%/memberships/extend" },
          { method: "constructor" },
          { body: { _tag: "TooLarge" } },
          { body: { _tag: "Unreadable", error: { _tag: "RequestTimeout" } } },
        ]
        const statuses = yield* Effect.forEach(wrong, (given) =>
          Effect.map(request(given), ({ status }) => status),
        )
        expect(statuses).toEqual([400, 422, 401, 400, 405, 413, 408])
        expect(logged).toEqual([])
      }),
    ),
  )
})

describe("the access record", () => {
  it.effect("has what an access log needs, and no token", () => {
    const records: Array<AccessRecord> = []
    return handling(
      ({ request, token }) =>
        Effect.gen(function* () {
          const response = yield* request({ body: json({ extend: now + 1 }) })
          yield* request({
            headers: { authorization: "Bearer wrong" },
            remoteAddress: "2001:db8::1",
          })
          const [key] = yield* (yield* ApiKeys).list()
          expect(records).toEqual([
            {
              requestId: Object(response.body).request_id,
              method: "PATCH",
              path: extendOne,
              status: 200,
              durationMillis: 0,
              address: "203.0.113.7",
              keyId: key?.id,
            },
            expect.objectContaining({
              status: 401,
              address: "2001:db8:0:0::/64",
              keyId: undefined,
            }),
          ])
          expect(JSON.stringify(records)).not.toContain(token)
        }),
      { onResponse: (record) => void records.push(record) },
    )
  })

  it.effect("has no query, and so no ticket", () => {
    const records: Array<AccessRecord> = []
    return handling(
      ({ request }) =>
        Effect.gen(function* () {
          const path = "/v2/projects/p1/events"
          yield* request({ method: "GET", path, query: "ticket=tkt_secret", headers: {} })
          expect(records.map((record) => record.path)).toEqual([path])
          expect(JSON.stringify(records)).not.toContain("tkt_")
        }),
      { onResponse: (record) => void records.push(record) },
    )
  })

  it.effect("is passed to onResponse, and the response is sent even if that throws", () =>
    handling(
      ({ logged, request }) =>
        Effect.gen(function* () {
          expect((yield* request({ body: json({ extend: now + 1 }) })).status).toBe(200)
          expect(logged.join()).toContain("onResponse threw")
        }),
      {
        onResponse: () => {
          throw new Error("from the host")
        },
      },
    ),
  )
})

describe("paths", () => {
  it.effect("are those of the API after the base path", () =>
    handling(
      () =>
        Effect.gen(function* () {
          const { owns } = yield* Handler
          expect(owns(`/api${extendOne}`)).toBe(true)
          expect(owns(extendOne)).toBe(false)
          expect(owns("/api")).toBe(false)
        }),
      { basePath: "/api/" },
    ),
  )
})

describe("an address that is refused", () => {
  const oneADay = { limit: 1, window: "1 day" } as const

  it.effect("costs no look-up: 5,000 guesses cost at most as many as are admitted", () =>
    handling(({ fault, request }) =>
      Effect.gen(function* () {
        const statuses: Array<number> = []
        for (let guess = 0; guess < 5000; guess++) {
          const headers = { authorization: `Bearer guess-${guess}` }
          statuses.push((yield* request({ headers })).status)
        }
        expect(statuses.filter((status) => status === 401)).toHaveLength(300)
        expect(statuses.filter((status) => status === 429)).toHaveLength(4700)
        expect(fault.finds).toBe(300)
      }),
    ),
  )

  it.effect("is admitted again after Retry-After, with any valid key", () =>
    handling(
      ({ request }) =>
        Effect.gen(function* () {
          const list = { method: "GET", path: "/v2/projects/p1/integrations/webhooks" }
          yield* request({ ...list, headers: {} })
          const refused = yield* request(list)
          expect(refused).toMatchObject({ status: 429, headers: { "Retry-After": "86400" } })
          yield* TestClock.adjust("1 day")
          expect((yield* request(list)).status).toBe(200)
        }),
      { rateLimits: { perAddress: oneADay } },
    ),
  )

  it.effect("still reports the limits of a key that is cached", () =>
    handling(
      ({ request }) =>
        Effect.gen(function* () {
          const list = { method: "GET", path: "/v2/projects/p1/integrations/webhooks" }
          yield* request(list)
          yield* request({ ...list, headers: {} })
          const stranger = yield* request({ ...list, headers: {} })
          const holder = yield* request(list)
          expect(stranger.headers).toMatchObject({ "X-RateLimit-Limit": "2" })
          expect(holder.headers).toMatchObject({
            "X-RateLimit-Limit": "1",
            "Retry-After": "86400",
          })
        }),
      { rateLimits: { perKey: oneADay, perAddress: { limit: 2, window: "1 day" } } },
    ),
  )

  it.effect("does not ask the host's authentication", () => {
    let asked = 0
    const authenticate = () => {
      asked++
      return { keyId: "u1", projects: ["p1"] }
    }
    return handling(
      ({ request }) =>
        Effect.gen(function* () {
          yield* request({})
          expect((yield* request({})).status).toBe(429)
          expect((yield* request({ authenticate })).status).toBe(429)
          expect(asked).toBe(1)
        }),
      { authenticate, rateLimits: { perAddress: oneADay } },
    )
  })
})

describe("the id of a request", () => {
  const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/

  const withId = (headers: ApiRequest["headers"]) => ({
    method: "GET",
    path: "/v2/projects/p1/integrations/webhooks",
    headers,
  })

  const idOf = ({ body }: { readonly body: unknown }) => Object(body).request_id

  it.effect("is new if no header is named", () =>
    handling(({ request }) =>
      Effect.gen(function* () {
        const response = yield* request(withId({ "x-request-id": "a-1" }))
        expect(idOf(response)).toMatch(uuid)
      }),
    ),
  )

  it.effect("is the one that the request comes with, if that is valid", () =>
    handling(
      ({ request }) =>
        Effect.gen(function* () {
          const ids = ["a", "Root=1-67891233-abcdef012345678912345678", "~".repeat(128)]
          for (const id of ids) {
            expect(idOf(yield* request(withId({ "x-request-id": id })))).toBe(id)
          }
          const others = ["", " ", "a b", "ü", "a\n", "~".repeat(129), ["a", "b"], undefined]
          for (const other of others) {
            expect(idOf(yield* request(withId({ "x-request-id": other })))).toMatch(uuid)
          }
        }),
      { requestIdHeader: "X-Request-Id" },
    ),
  )

  it.effect("is in the audit trail, and in the record of the response", () => {
    const records: Array<AccessRecord> = []
    return handling(
      ({ request, token }) =>
        Effect.gen(function* () {
          yield* request({
            body: json({ extend: now + 1 }),
            headers: {
              authorization: `Bearer ${token}`,
              "content-type": "application/json",
              "x-request-id": "a-1",
            },
          })
          const { history } = yield* Memberships
          const [row] = yield* history({ projectId: "p1", userId: "1001" })
          expect(row?.origin.requestId).toBe("a-1")
          expect(records.map(({ requestId }) => requestId)).toEqual(["a-1"])
        }),
      { requestIdHeader: "x-request-id", onResponse: (record) => void records.push(record) },
    )
  })

  it.effect("is described in the document as what it may be", () => {
    const schema = Effect.gen(function* () {
      const { handle } = yield* Handler
      const { body } = yield* handle({
        method: "GET",
        path: "/v2/openapi.json",
        headers: {},
        body: emptyBody,
        remoteAddress: undefined,
      })
      return JSON.parse(String(body)).components.schemas.RequestId
    })
    return Effect.gen(function* () {
      expect(yield* handling(() => schema)).toMatchObject({ type: "string", format: "uuid" })
      const open = yield* handling(() => schema, { requestIdHeader: "x-request-id" })
      expect(open).toMatchObject({ type: "string", maxLength: 128 })
      expect(open).not.toHaveProperty("format")
    })
  })
})
