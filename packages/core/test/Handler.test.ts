import { describe, expect, it } from "@effect/vitest"
import { ApiKeys } from "@tenure/core/ApiKeys"
import { ApiKeyStore } from "@tenure/core/ApiKeyStore"
import { type ApiRequest, type Body, emptyBody } from "@tenure/core/ApiRequest"
import type { AccessRecord } from "@tenure/core/Handler"
import { Handler } from "@tenure/core/Handler"
import { Memberships } from "@tenure/core/Memberships"
import { MembershipStore } from "@tenure/core/MembershipStore"
import { RateLimitStore } from "@tenure/core/RateLimitStore"
import { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Tenure from "@tenure/core/Tenure"
import { memory } from "@tenure/memory"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { TestClock } from "effect/testing"

const now = Date.parse("2026-06-01T00:00:00.000Z")
const extendOne = "/v2/projects/p1/memberships/1001/extend"
const utf8 = new TextEncoder()

const json = (value: unknown): Body => ({
  _tag: "Bytes",
  bytes: utf8.encode(JSON.stringify(value)),
})

type Failing = () => Effect.Effect<never, StoreUnavailable>

/** What a store does instead of its work, if anything. */
interface Fault {
  extend?: Failing
  findKey?: Failing
  take?: Failing
}

const down: Failing = () => Effect.fail(new StoreUnavailable({ cause: "secret of the store" }))

/** Memory stores that can be made to fail. */
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
          find: (digest) => fault.findKey?.() ?? apiKeys.find(digest),
        }),
        Context.add(RateLimitStore, {
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
  /** Everything that was logged. */
  readonly logged: ReadonlyArray<string>
  readonly fault: Fault
}

/** Runs a test with a project, a member and a key, at a fixed time. */
const handling = <A, E>(
  test: (running: Running) => Effect.Effect<A, E, Tenure.Services>,
  options: Tenure.Options = {},
) => {
  const fault: Fault = {}
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
      return { ...response, body: JSON.parse(body) }
    })
    return yield* test({ token, request, logged, fault })
  }).pipe(
    Effect.provide(Layer.provide(Tenure.layer(options), faultyStores(fault))),
    Effect.provide(Logger.layer([logger])),
  )
}

describe("the future rule", () => {
  it.effect("is strict at the millisecond of the clock", () =>
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

describe("a body that the host has parsed", () => {
  it.effect("is used as it is", () =>
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

describe("while the store is down", () => {
  it.effect("requests are answered 503, with a time to come back", () =>
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

describe("while the keys' store is down", () => {
  it.effect("requests with a token are answered 503, those without one 401", () =>
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

describe("while the limits' store is down", () => {
  const body = json({ extend: now + 1 })
  const faults = [
    ["does not answer", down],
    ["has a bug", () => Effect.die(new Error("a bug"))],
  ] as const

  it.effect.each(faults)("and %s, limits are kept in this process", ([_name, take]) =>
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

  it.effect.each(faults)("and %s, requests are answered 503 if it is to be so", ([_name, take]) =>
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

  it.effect.each(faults)("and %s, requests are not limited if it is to be so", ([_name, take]) =>
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
  it.effect("is answered 500 without a word about it, which is for the log", () =>
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

describe("what clients get wrong", () => {
  it.effect("is not logged at all", () =>
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
  it.effect("has what a log needs, and no token", () => {
    const records: Array<AccessRecord> = []
    return handling(
      ({ request, token }) =>
        Effect.gen(function* () {
          const response = yield* request({ body: json({ extend: now + 1 }) })
          yield* request({ headers: { authorization: "Bearer wrong" } })
          const [key] = yield* (yield* ApiKeys).list()
          expect(records).toEqual([
            {
              requestId: Object(response.body).request_id,
              method: "PATCH",
              path: extendOne,
              status: 200,
              durationMillis: 0,
              keyId: key?.id,
            },
            expect.objectContaining({ status: 401, keyId: undefined }),
          ])
          expect(JSON.stringify(records)).not.toContain(token)
        }),
      { onResponse: (record) => void records.push(record) },
    )
  })

  it.effect("may make its observer throw: the response is sent all the same", () =>
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
  it.effect("are the API's or not", () =>
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
