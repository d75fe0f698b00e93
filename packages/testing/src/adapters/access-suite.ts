/** Authentication, projects, paths and request ids. */

import { type Operation, routes } from "@tenure/core/internal"
import { roleCovers } from "@tenure/core/internal"
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
} from "../support/http.ts"
import { type Fixture, type ServerTest, webhooks } from "./harness.ts"

const extend = "2099-01-01T00:00:00.000Z"

/** All endpoints, with a body if they accept one. */
const endpoints: ReadonlyArray<readonly [method: string, path: string, body?: object]> = [
  ["PATCH", "/memberships/1001/extend", { extend }],
  ["PATCH", "/memberships/extend", { extend }],
  ["POST", "/integrations/webhooks", { url: "https://receiver.example/" }],
  ["GET", "/integrations/webhooks"],
  ["DELETE", "/integrations/webhooks/6ba7b810-9dad-41d1-80b4-00c04fd430c8"],
]

/** Removes the fields unique to each response. */
const comparable = ({ body, headers, status }: Incoming, project: string) => {
  const { date: _date, ...rest } = headers
  const { path, request_id: _id, ...fields } = fieldsOf(body)
  return { status, headers: rest, fields, path: String(path).replace(project, "PROJECT") }
}

/** Declares the tests. */
export const accessSuite = (test: ServerTest): void => {
  describe("authentication", () => {
    test("is required by every endpoint", async ({ url }) => {
      for (const [method, suffix] of endpoints) {
        const path = `/v2/projects/p1${suffix}`
        const response = await send(url, { method, path })
        expectFailure(response, 401, "UNAUTHORIZED")
        expect(response.headers["www-authenticate"]).toBe("Bearer")
      }
    })

    test("accepts only a known bearer token", async ({ call, token }) => {
      const fields = [
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
      ]
      for (const authorization of fields) {
        const response = await call("GET", webhooks, { headers: { authorization } })
        expectFailure(response, 401, "UNAUTHORIZED")
      }
    })

    test("accepts the scheme in upper and lower case", async ({ call, token }) => {
      for (const scheme of ["Bearer", "bearer", "BEARER", "bEaReR"]) {
        const headers = { authorization: `${scheme} ${token}` }
        expect((await call("GET", webhooks, { headers })).status).toBe(200)
      }
    })

    test("refuses two Authorization fields, even if they are identical", async ({
      call,
      token,
    }) => {
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
  })

  describe("a project", () => {
    test("that the key does not open looks exactly like one that does not exist", async ({
      call,
    }) => {
      for (const [method, suffix, body] of endpoints) {
        const foreign = await call(method, `/v2/projects/p2${suffix}`, { body })
        const missing = await call(method, `/v2/projects/p9${suffix}`, { body })
        expectFailure(foreign, 404, "PROJECT_NOT_FOUND")
        const ignoringCounters = (response: Incoming, project: string) => {
          const one = comparable(response, project)
          const { "x-ratelimit-remaining": _r, "x-ratelimit-reset": _s, ...headers } = one.headers
          return { ...one, headers }
        }
        expect(ignoringCounters(foreign, "p2")).toEqual(ignoringCounters(missing, "p9"))
      }
    })

    test("that the key does not open looks missing also when the body is invalid", async ({
      call,
    }) => {
      for (const body of ["{", "[]", { extend: 1 }, {}]) {
        const path = "/v2/projects/p2/memberships/extend"
        expectFailure(await call("PATCH", path, { body }), 404, "PROJECT_NOT_FOUND")
      }
    })

    test("can share a key with other projects", async ({ call, tenure }) => {
      const { token } = await tenure.apiKeys.issue({ projects: ["p1", "p2"] })
      for (const project of ["p1", "p2"]) {
        const path = `/v2/projects/${project}/integrations/webhooks`
        expect((await call("GET", path, { token })).status).toBe(200)
      }
    })

    test("can have any name that can be percent-encoded", async ({ call, tenure }) => {
      const names = ["__proto__", "constructor", "a/b", "a b", "日本", "100%", "...", "?#"]
      for (const name of names) {
        const path = `/v2/projects/${encodeURIComponent(name)}/integrations/webhooks`
        expect((await call("GET", path)).status).toBe(404)
        await tenure.memberships.createProject(name)
        const { token } = await tenure.apiKeys.issue({ projects: [name] })
        expect((await call("GET", path, { token })).status).toBe(200)
      }
    })
  })

  describe("a path", () => {
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
  })

  describe("a target in absolute form", () => {
    test("counts as its path, with a query or a fragment", async ({ call }) => {
      for (const end of ["", "?a", "#a", "?a#b", "#/", "#?"]) {
        const response = await call("GET", `http://localhost${webhooks}${end}`)
        expect(response.body).toMatchObject({ code: 200, path: webhooks })
      }
    })
  })

  describe("a path with dot segments", () => {
    test("is outside the API", async ({ call }) => {
      for (const dots of ["..", "%2e%2e", ".", "%2E"]) {
        expectElsewhere(await call("DELETE", `${webhooks}/${dots}`))
      }
    })
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

/** Declares the tests for keys whose time is over. */
export const keysSuite = (test: ServerTest): void => {
  describe("authentication", () => {
    test("fails after a key is revoked or has expired", async ({ call, tenure }) => {
      const statusOf = async ({ token }: { readonly token: string }) =>
        (await call("GET", webhooks, { token })).status
      const revoked = await tenure.apiKeys.issue({ projects: ["p1"] })
      const expiring = await tenure.apiKeys.issue({
        projects: ["p1"],
        expiresAt: Date.now() + 1000,
      })
      const valid = await tenure.apiKeys.issue({
        projects: ["p1"],
        expiresAt: Date.now() + 60_000,
      })
      expect(await statusOf(revoked)).toBe(200)
      await tenure.apiKeys.revoke(revoked.id)
      expect(await statusOf(revoked)).toBe(401)
      await expect.poll(() => statusOf(expiring), { timeout: 60_000, interval: 100 }).toBe(401)
      expect(await statusOf(valid)).toBe(200)
    })
  })
}

/** Permissions: every operation, for every role, in own, foreign and missing projects. */

interface Expectation {
  /** The lowest role allowed to call it; `"none"` if no key is needed. */
  readonly least: Role | "none"
  /** Whether the key must open all projects. */
  readonly needsAll?: boolean
  /** The request's body, if the operation needs one. */
  readonly body?: object
  /** The body's content type, if it is not JSON. */
  readonly type?: string
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
  "memberships.extend": { least: "client", body: { extend: extend } },
  "memberships.extendAll": { least: "client", body: { extend: extend } },
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
    type: "application/x-ndjson",
  },
  "memberships.grant": { least: "operator", body: { end_date: extend } },
  "memberships.update": { least: "operator", body: { metadata: { plan: "gold" } } },
  "memberships.end": { least: "operator" },
  "memberships.list": { least: "client" },
  "memberships.get": { least: "client" },
  "memberships.history": { least: "operator" },
  "projects.list": { least: "client" },
  "projects.create": { least: "admin", missing: "OK" },
  "projects.get": { least: "client" },
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
  "webhooks.replay": {
    least: "operator",
    body: { since: extend },
    ...unknownWebhook,
  },
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

const senders: ReadonlyArray<Sender> = [
  ...roles.map((role) => ({ name: `${role} of p2`, role, projects: ["p2"] })),
  ...roles.map((role) => ({
    name: `${role} of all projects`,
    role,
    projects: "all" as const,
  })),
]

const projects = ["p1", "p2", "p9"]

const unknownId = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"

/** Returns an operation's path: for a member in the project, or with unknown ids. */
const pathOf = (operation: Operation, project: string): string =>
  routes[operation].pattern
    .replace(":project_id", project)
    .replace(":user_id", "1001")
    .replace(/:\w+/, unknownId)

const codeOf = ({ body, status }: Incoming): unknown =>
  status === 200 ? "OK" : fieldsOf(fieldsOf(body)["error"])["error_code"]

/** Returns how a request in a project is answered; p9 does not exist. */
const expectedOf = (operation: Operation, sender: Sender, project: string): string => {
  const { answer = "OK", least, missing = "PROJECT_NOT_FOUND", needsAll } = expectations[operation]
  if (needsAll === true && sender.projects !== "all") return "FORBIDDEN"
  if (least !== "none" && !roleCovers(sender.role, least)) return "FORBIDDEN"
  if (!routes[operation].pattern.includes(":project_id")) return answer
  if (sender.projects === "all") return project === "p9" ? missing : answer
  return sender.projects.includes(project) ? answer : "PROJECT_NOT_FOUND"
}

/** Grants both projects' memberships again after an operation may have removed them. */
const restore = async ({ tenure: { memberships } }: Fixture): Promise<void> => {
  for (const projectId of ["p1", "p2"]) {
    await memberships.createProject(projectId)
    await memberships.grant({ projectId, userId: "1001", endDate: extend })
  }
}

const answersTo = async (fixture: Fixture, operation: Operation, sender: Sender) => {
  const { body, type } = expectations[operation]
  const { method } = routes[operation]
  const headers = type === undefined ? {} : { "content-type": type }
  const answers: Record<string, unknown> = {}
  for (const project of projects) {
    await restore(fixture)
    const { token } = await fixture.tenure.apiKeys.issue(sender)
    answers[project] = codeOf(
      await fixture.call(method, pathOf(operation, project), { token, body, headers }),
    )
  }
  return answers
}

/** Declares the tests. */
export const rolesSuite = (test: ServerTest): void => {
  describe("a role", () => {
    test("admin is needed to erase a person", async (fixture) => {
      for (const sender of senders) {
        await restore(fixture)
        const { token } = await fixture.tenure.apiKeys.issue(sender)
        for (const [erase, least] of [
          ["true", "admin"],
          ["false", "operator"],
        ] as const) {
          const path = `${pathOf("memberships.end", "p2")}?erase=${erase}`
          const code = codeOf(await fixture.call("DELETE", path, { token }))
          const isForbidden = !roleCovers(sender.role, least)
          expect([sender.name, erase, code === "FORBIDDEN"]).toEqual([
            sender.name,
            erase,
            isForbidden,
          ])
        }
      }
    })

    for (const operation of Struct.keys(expectations)) {
      test(`${expectations[operation].least} is enough for ${operation}, in projects that the key opens`, async (fixture) => {
        for (const sender of senders) {
          const expected = projects.map((project) => [
            project,
            expectedOf(operation, sender, project),
          ])
          const answers = await answersTo(fixture, operation, sender)
          expect([sender.name, answers]).toEqual([sender.name, Object.fromEntries(expected)])
        }
        const { method } = routes[operation]
        const headers = { authorization: "" }
        const stranger = await fixture.call(method, pathOf(operation, "p1"), { headers })
        expect(codeOf(stranger)).toBe(
          expectations[operation].least === "none" ? "OK" : "UNAUTHORIZED",
        )
      })
    }
  })
}
