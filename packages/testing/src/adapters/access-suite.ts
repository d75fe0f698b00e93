/** Rate limits, authentication, projects, paths, request ids, and roles' rights. */

import { setTimeout as sleep } from "node:timers/promises"
import { type Operation, roleCovers, routes } from "@tenure/core/internal"
import { type Role, roles } from "@tenure/core/store"
import * as Struct from "effect/Struct"
import { describe, expect } from "vitest"
import {
  type Incoming,
  expectElsewhere,
  expectFailure,
  expectHeaders,
  fieldsOf,
  send,
  uuid,
} from "../support/http.ts"
import {
  type Fixture,
  type ServerTest,
  asLines,
  extend,
  project,
  unknownId,
  webhooks,
} from "./harness.ts"

const many = { limit: 1_000_000, window: "1 minute" } as const

const statuses = (responses: ReadonlyArray<Incoming>): ReadonlyArray<number> =>
  responses.map(({ status }) => status)

/** Sends requests one after another. */
const sequence = async (times: number, { call }: Fixture): Promise<ReadonlyArray<Incoming>> => {
  const responses: Array<Incoming> = []
  for (let count = 0; count < times; count++) responses.push(await call("GET", webhooks))
  return responses
}

/**
 * Expects a documented refusal, with `code` instead of `error_code` and without `ok`. Returns the wait.
 */
const expectRefusal = (response: Incoming, limit: number): number => {
  expectHeaders(response)
  expect(response.status).toBe(429)
  const retryAfter = Number(response.headers["retry-after"])
  expect(Number.isInteger(retryAfter) && retryAfter >= 1).toBe(true)
  expect(response.headers).toMatchObject({
    "x-ratelimit-limit": String(limit),
    "x-ratelimit-remaining": "0",
  })
  expect(response.body).toStrictEqual({
    request_id: expect.stringMatching(uuid),
    method: "GET",
    path: webhooks,
    code: 429,
    error: {
      message: expect.stringMatching(/./),
      code: "RATE_LIMIT_EXCEEDED",
      retry_after: retryAfter,
    },
  })
  return retryAfter
}

/** Declares the tests for what is the same on every host. The core tests the rules with a clock. */
export const bucketsSuite = (test: ServerTest): void => {
  describe("rate limits", () => {
    test.with({
      rateLimits: { perKey: { limit: 100, window: "1 hour" }, perAddress: many, burst: many },
    })("refuse the 101st request of a key in a minute", async (fixture) => {
      const responses = await sequence(101, fixture)
      expect(responses[0]?.headers).toMatchObject({
        "x-ratelimit-limit": "100",
        "x-ratelimit-remaining": "99",
      })
      const refused = responses.at(-1) ?? expect.fail("there are no responses")
      expect(new Set(statuses(responses.slice(0, -1)))).toEqual(new Set([200]))
      expectRefusal(refused, 100)
    })

    test.with({ rateLimits: {} })(
      "refuse the 21st request of a key in a second, and admit it after the wait they return",
      async ({ call }) => {
        const start = performance.now()
        const requests = Array.from({ length: 60 }, () => call("GET", webhooks))
        const refused = (await Promise.all(requests)).filter(({ status }) => status === 429)
        // A token returns each 50 ms while the requests are sent.
        const returned = Math.ceil((performance.now() - start) / 50)
        expect(refused.length).toBeGreaterThanOrEqual(40 - returned)
        expect(refused.length).toBeLessThanOrEqual(40)
        for (const response of refused) expect(expectRefusal(response, 20)).toBe(1)
        // The test is about this wait.
        await sleep(1000)
        expect((await call("GET", webhooks)).status).toBe(200)
      },
    )

    test.with({
      rateLimits: { perKey: many, perAddress: { limit: 300, window: "24 hours" }, burst: many },
    })(
      "refuse the 301st request of an address in a minute, with any token or none",
      async ({ call, otherToken, url }) => {
        const kinds = [
          () => call("GET", webhooks),
          () => call("GET", webhooks, { token: otherToken }),
          () => call("GET", webhooks, { token: "guessed" }),
          () => send(url, { path: webhooks }),
          () => send(url, { path: webhooks, headers: { authorization: "Basic bm9uZQ==" } }),
        ]
        for (let round = 0; round < 60; round++) {
          for (const kind of kinds) expect((await kind()).status).not.toBe(429)
        }
        for (const kind of kinds) expectRefusal(await kind(), 300)
      },
    )

    test.with({
      rateLimits: { perKey: { limit: 1, window: "1 hour" }, perAddress: many, burst: many },
    })("suspend a key after 50 refusals, and return how long", async (fixture) => {
      const responses = await sequence(52, fixture)
      const waits = responses.slice(1).map((response) => expectRefusal(response, 1))
      // Without the suspension, the wait would be an hour.
      expect(waits[48]).toBeGreaterThan(3500)
      expect(waits[49]).toBe(600)
      expect(waits[50]).toBeGreaterThan(590)
      expect(waits[50]).toBeLessThanOrEqual(600)
      const path = webhooks.replace("p1", "p2")
      const other = await fixture.call("GET", path, { token: fixture.otherToken })
      expect(other.status).toBe(200)
    })
  })
}

/** Declares the tests for addresses, and for the headers of all responses. */
export const limitsSuite = (test: ServerTest): void => {
  const from = ({ url }: Fixture, address: string) =>
    send(url, { path: webhooks, headers: { "x-forwarded-for": address } })

  describe("rate limits", () => {
    test.with({
      rateLimits: {
        perKey: { limit: 9, window: "1 hour" },
        perAddress: { limit: 100, window: "1 hour", capacity: 101 },
        burst: many,
      },
    })("are in the headers of every response, whatever its status", async ({ call, url }) => {
      const responses = [
        await call("GET", webhooks),
        await send(url, { path: webhooks }),
        await call("GET", "/v2/projects/%zz/integrations/webhooks"),
        await call("PUT", webhooks),
        await call("POST", webhooks, { body: "{" }),
        await call("POST", webhooks, { body: "x".repeat(70_000) }),
        await call("POST", webhooks, { body: "{}", headers: { "content-type": "text/plain" } }),
        await call("POST", webhooks, { body: {} }),
        await call("GET", "/v2/projects/p9/integrations/webhooks"),
        await call("HEAD", webhooks),
        await call("GET", webhooks),
      ]
      expect(statuses(responses)).toEqual([200, 401, 400, 405, 400, 413, 415, 422, 404, 405, 429])
      for (const response of responses) expectHeaders(response)
      const remaining = responses.map(({ headers }) => headers["x-ratelimit-remaining"])
      expect(remaining).toEqual(["8", "99", "7", "6", "5", "4", "3", "2", "1", "0", "0"])
    })

    test.with({
      trustedProxies: ["127.0.0.0/8"],
      rateLimits: { perAddress: { limit: 1, window: "1 hour" } },
    })("count clients behind a trusted proxy by the address that it forwards", async (fixture) => {
      for (const [address, status] of [
        ["203.0.113.1", 401],
        ["6.6.6.6, 203.0.113.1", 429],
        ["203.0.113.2", 401],
        ["2001:db8::1", 401],
        ["2001:db8::2", 429],
      ] as const) {
        expect((await from(fixture, address)).status).toBe(status)
      }
    })

    test.with({ rateLimits: { perAddress: { limit: 1, window: "1 hour" } } })(
      "ignore the forwarded address from an untrusted client",
      async (fixture) => {
        expect((await from(fixture, "203.0.113.1")).status).toBe(401)
        expect((await from(fixture, "203.0.113.2")).status).toBe(429)
      },
    )

    test("are in every response, also once Tenure is closed", async ({ call, tenure, url }) => {
      if (tenure.close === undefined) return
      await tenure.close()
      const closed = ["GET", "PATCH", "OPTIONS"].map(async (method) =>
        expectFailure(await call(method, webhooks), 503, "SERVICE_UNAVAILABLE"),
      )
      await Promise.all(closed)
      for (const response of [
        await send(url, { path: webhooks }),
        await call("HEAD", webhooks),
        await call("POST", webhooks, { body: "{" }),
        await call("POST", webhooks, { body: "x".repeat(100_000) }),
        await call("POST", webhooks, { body: "{}", headers: { "content-encoding": "gzip" } }),
      ]) {
        expectHeaders(response)
        expect(response.status).toBe(503)
        expect(Number(response.headers["retry-after"])).toBeGreaterThanOrEqual(1)
        expect(response.headers["x-ratelimit-remaining"]).toBe("0")
      }
    })
  })
}

/** All endpoints in the contract, with a body if they accept one. */
const endpoints: ReadonlyArray<readonly [method: string, path: string, body?: object]> = [
  ["PATCH", "/memberships/1001/extend", { extend }],
  ["PATCH", "/memberships/extend", { extend }],
  ["POST", "/integrations/webhooks", { url: "https://receiver.example/" }],
  ["GET", "/integrations/webhooks"],
  ["DELETE", `/integrations/webhooks/${unknownId}`],
]

/** Removes ids, times, counts, and the project in the path. They differ in each response. */
const comparable = ({ body, headers, status }: Incoming) => {
  const { date: _d, "x-ratelimit-remaining": _r, "x-ratelimit-reset": _s, ...rest } = headers
  const { path, request_id: _id, ...fields } = fieldsOf(body)
  return { status, headers: rest, fields, path: String(path).replace(/p\d/, "") }
}

const authenticationTests = (test: ServerTest): void => {
  test("is required by every endpoint", async ({ url }) => {
    for (const [method, suffix] of endpoints) {
      const response = await send(url, { method, path: `${project}${suffix}` })
      expectFailure(response, 401, "UNAUTHORIZED")
      expect(response.headers["www-authenticate"]).toBe("Bearer")
    }
  })

  test("accepts only a known bearer token, with the scheme in upper and lower case", async (fixture) => {
    const { call, token } = fixture
    for (const scheme of ["Bearer", "bearer", "BEARER", "bEaReR"]) {
      const headers = { authorization: `${scheme} ${token}` }
      expect((await call("GET", webhooks, { headers })).status).toBe(200)
    }
    for (const authorization of [
      "",
      "Bearer",
      "Bearer ",
      "Bearer unknown",
      `Basic ${token}`,
      token,
      `Bearer${token}`,
      `Bearer ${token} ${token}`,
      `Bearer ${token},`,
      `Bearer ${token}x`,
      `Bearer "${token}"`,
      `Bearer ${token.slice(0, -1)}`,
      `Bearer ${token.toUpperCase()}`,
      `Bearer ${"x".repeat(8000)}`,
    ]) {
      const response = await call("GET", webhooks, { headers: { authorization } })
      expectFailure(response, 401, "UNAUTHORIZED")
    }
  })

  test("refuses two Authorization fields, even if they are identical", async ({ call, token }) => {
    for (const other of [token, "other"]) {
      const headers = { authorization: [`Bearer ${token}`, `Bearer ${other}`] }
      const response = await call("GET", webhooks, { headers })
      expect([400, 401]).toContain(response.status)
      expectHeaders(response)
    }
  })

  test("is checked before anything else in the request", async ({ url }) => {
    const response = await send(url, { method: "PROPFIND", path: webhooks, body: "{" })
    expectFailure(response, 401, "UNAUTHORIZED")
  })
}

const projectTests = (test: ServerTest): void => {
  test("that the key does not open looks exactly like one that does not exist, whatever the body", async (fixture) => {
    const { call } = fixture
    const invalid = ["{", "[]", { extend: 1 }].map(
      (body) => ["PATCH", "/memberships/extend", body] as const,
    )
    for (const [method, suffix, body] of [...endpoints, ...invalid]) {
      const foreign = await call(method, `/v2/projects/p2${suffix}`, { body })
      const missing = await call(method, `/v2/projects/p9${suffix}`, { body })
      expectFailure(foreign, 404, "PROJECT_NOT_FOUND")
      expect(comparable(foreign)).toEqual(comparable(missing))
    }
  })

  test("can have any name that can be percent-encoded", async ({ call, tenure }) => {
    for (const name of ["__proto__", "constructor", "a/b", "a b", "日本", "100%", "...", "?#"]) {
      const path = `/v2/projects/${encodeURIComponent(name)}/integrations/webhooks`
      expect((await call("GET", path)).status).toBe(404)
      await tenure.memberships.createProject(name)
      const { token } = await tenure.apiKeys.issue({ projects: [name] })
      expect((await call("GET", path, { token })).status).toBe(200)
    }
  })
}

const pathTests = (test: ServerTest): void => {
  test.with({ basePath: "/api/members" })("starts with the base path", async ({ call }) => {
    const response = await call("GET", `/api/members${webhooks}`)
    expect(response.body).toMatchObject({ code: 200, path: `/api/members${webhooks}` })
    expectElsewhere(await call("GET", webhooks))
  })

  test("appears in the envelope without the query", async ({ call }) => {
    const response = await call("GET", `${webhooks}?token=secret&x=/y`)
    expect(response.body).toMatchObject({ code: 200, path: webhooks })
    expect(response.text).not.toContain("secret&")
  })

  test("counts alone in a target in absolute form, with a query or a fragment", async (fixture) => {
    const { call } = fixture
    for (const end of ["", "?a", "#a", "?a#b", "#/", "#?"]) {
      const response = await call("GET", `http://localhost${webhooks}${end}`)
      expect(response.body).toMatchObject({ code: 200, path: webhooks })
    }
  })

  test("with dot segments is outside the API", async ({ call }) => {
    for (const dots of ["..", "%2e%2e", ".", "%2E"]) {
      expectElsewhere(await call("DELETE", `${webhooks}/${dots}`))
    }
  })
}

export const accessSuite = (test: ServerTest): void => {
  describe("authentication", () => {
    authenticationTests(test)
  })
  describe("a project", () => {
    projectTests(test)
  })
  describe("a path", () => {
    pathTests(test)
  })
  describe("the envelope", () => {
    test("has a different request id in each response", async ({ call }) => {
      const ids = new Set<unknown>()
      for (let count = 0; count < 20; count++) {
        ids.add(fieldsOf((await call("GET", webhooks)).body)["request_id"])
      }
      expect(ids.size).toBe(20)
    })
  })
}

/** How an operation is answered. */
interface Expectation {
  /** The lowest role allowed to call it; `"none"` if no key is needed. */
  readonly least: Role | "none"
  /** Whether the key must open all projects. */
  readonly needsAll?: boolean
  /** The request's body, if the operation needs one. */
  readonly body?: object
  /** The body's type, if it is not JSON. */
  readonly type?: typeof asLines
  /** Whether it needs a paused membership. */
  readonly isPaused?: boolean
  /** The expected result with permission: `"OK"` (default) or an error code. */
  readonly answer?: string
  /**
   * The expected result for a missing project with a key for all projects; by default, the code for a
   * missing project.
   */
  readonly missing?: string
}

const unknownWebhook = { answer: "WEBHOOK_NOT_FOUND" } as const

/** Expectations by operation. A missing one does not compile. */
const expectations: { readonly [Of in Operation]: Expectation } = {
  "memberships.extend": { least: "client", body: { extend } },
  "memberships.extendAll": { least: "client", body: { extend } },
  "memberships.extendSome": {
    least: "operator",
    body: { where: { state: "active" }, extend },
  },
  "memberships.bulkExtensions": { least: "client" },
  "memberships.ends": { least: "client" },
  "memberships.undoBulkExtension": {
    least: "operator",
    body: {},
    answer: "BULK_EXTENSION_NOT_FOUND",
  },
  "memberships.import": {
    least: "operator",
    body: { user_id: "1001", end_date: extend },
    type: asLines,
  },
  "memberships.grant": { least: "operator", body: { end_date: extend } },
  "memberships.update": { least: "operator", body: { metadata: { plan: "gold" } } },
  "memberships.move": { least: "operator", body: { to: "1002" } },
  "memberships.pause": { least: "operator", body: {} },
  "memberships.resume": { least: "operator", body: {}, isPaused: true },
  "memberships.end": { least: "operator" },
  "memberships.list": { least: "client" },
  "memberships.get": { least: "client" },
  "memberships.history": { least: "operator" },
  "projects.list": { least: "client" },
  "projects.create": { least: "admin", missing: "OK" },
  "projects.get": { least: "client" },
  "projects.update": { least: "operator", body: { time_zone: "Europe/Berlin" } },
  "projects.delete": { least: "admin" },
  "projects.audit": { least: "operator" },
  "projects.activity": { least: "operator" },
  "webhooks.list": { least: "client" },
  "webhooks.create": { least: "client", body: { url: "https://receiver.example/" } },
  "webhooks.update": { least: "operator", body: { disabled: true }, ...unknownWebhook },
  "webhooks.delete": { least: "client", ...unknownWebhook },
  "webhooks.health": { least: "client" },
  "webhooks.get": { least: "client", ...unknownWebhook },
  "webhooks.ping": { least: "operator", ...unknownWebhook },
  "webhooks.enable": { least: "operator", ...unknownWebhook },
  "webhooks.rotate": { least: "operator", ...unknownWebhook },
  "webhooks.activity": { least: "client", ...unknownWebhook },
  "webhooks.deliveries": { least: "operator", ...unknownWebhook },
  "webhooks.delivery": { least: "operator", ...unknownWebhook },
  "webhooks.replay": { least: "operator", body: { since: extend }, ...unknownWebhook },
  "webhooks.cancel": { least: "operator", body: {}, ...unknownWebhook },
  "events.list": { least: "client" },
  "events.publish": { least: "operator", body: { type: "payment.completed", data: {} } },
  "events.get": { least: "operator", answer: "EVENT_NOT_FOUND" },
  "realtime.issueTicket": { least: "client", body: { projects: ["p2"] } },
  "apiKeys.list": { least: "admin" },
  "apiKeys.issue": { least: "admin", body: { projects: ["p2"], role: "client" } },
  "apiKeys.revoke": { least: "admin", answer: "API_KEY_NOT_FOUND" },
  "audit.list": { least: "admin", needsAll: true },
  "identity.get": { least: "client" },
  "status.activity": { least: "admin", needsAll: true },
  "status.get": { least: "admin", needsAll: true },
  "docs.document": { least: "none" },
  "docs.asyncDocument": { least: "none" },
  "docs.page": { least: "none" },
}

/** A principal and its project. */
interface Sender {
  readonly name: string
  readonly role: Role
  readonly projects: "all" | ReadonlyArray<string>
}

const senders: ReadonlyArray<Sender> = roles.flatMap((role) => [
  { name: `${role} of p2`, role, projects: ["p2"] },
  { name: `${role} of all projects`, role, projects: "all" },
])

const projects = ["p1", "p2", "p9"]

/** Returns an operation's path: for a member in the project, or with unknown ids. */
const pathOf = (operation: Operation, projectId: string): string =>
  routes[operation].pattern
    .replace(":project_id", projectId)
    .replace(":user_id", "1001")
    .replace(/:\w+/, unknownId)

const codeOf = ({ body, status }: Incoming): unknown =>
  status === 200 ? "OK" : fieldsOf(fieldsOf(body)["error"])["error_code"]

/** Returns how a request in a project is answered; p9 does not exist. */
const expectedOf = (operation: Operation, sender: Sender, projectId: string): string => {
  const { answer = "OK", least, missing = "PROJECT_NOT_FOUND", needsAll } = expectations[operation]
  if (needsAll === true && sender.projects !== "all") return "FORBIDDEN"
  if (least !== "none" && !roleCovers(sender.role, least)) return "FORBIDDEN"
  if (!routes[operation].pattern.includes(":project_id")) return answer
  if (sender.projects === "all") return projectId === "p9" ? missing : answer
  return sender.projects.includes(projectId) ? answer : "PROJECT_NOT_FOUND"
}

/** Sends a request as a sender, in projects whose memberships an operation may have removed or paused before. */
const codeFor = async (
  { call, tenure }: Fixture,
  sender: Sender,
  operation: Operation,
  path: string,
): Promise<unknown> => {
  const { body, isPaused, type } = expectations[operation]
  for (const projectId of ["p1", "p2"]) {
    const member = { projectId, userId: "1001" }
    await tenure.memberships.createProject(projectId)
    const { state } = await tenure.memberships.grant({ ...member, endDate: extend })
    if (state === "paused") await tenure.memberships.resume(member)
    if (isPaused === true) await tenure.memberships.pause(member)
  }
  const { token } = await tenure.apiKeys.issue(sender)
  return codeOf(await call(routes[operation].method, path, { token, body, headers: { ...type } }))
}

/** Declares the tests: every operation, for every role, in own, foreign and missing projects. */
export const rolesSuite = (test: ServerTest): void => {
  describe("a role", () => {
    test("admin is needed to erase a person", async (fixture) => {
      for (const sender of senders) {
        for (const [erase, least] of [
          ["true", "admin"],
          ["false", "operator"],
        ] as const) {
          const path = `${pathOf("memberships.end", "p2")}?erase=${erase}`
          const code = await codeFor(fixture, sender, "memberships.end", path)
          const expected = roleCovers(sender.role, least) ? "OK" : "FORBIDDEN"
          expect([sender.name, erase, code]).toEqual([sender.name, erase, expected])
        }
      }
    })

    for (const operation of Struct.keys(expectations)) {
      const { least } = expectations[operation]
      test(`${least} is enough for ${operation}, in projects that the key opens`, async (fixture) => {
        for (const sender of senders) {
          for (const projectId of projects) {
            const code = await codeFor(fixture, sender, operation, pathOf(operation, projectId))
            const expected = expectedOf(operation, sender, projectId)
            expect([sender.name, projectId, code]).toEqual([sender.name, projectId, expected])
          }
        }
        const { method } = routes[operation]
        const stranger = await send(fixture.url, { method, path: pathOf(operation, "p1") })
        expect(codeOf(stranger)).toBe(least === "none" ? "OK" : "UNAUTHORIZED")
      })
    }
  })
}
