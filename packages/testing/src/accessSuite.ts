/** Who is let in, and what the others are told. */

import { describe, expect, it } from "vitest"
import type { Serving } from "./AdapterHarness.ts"
import { expectElsewhere, expectFailure, expectHeaders, fieldsOf } from "./envelope.ts"
import { type Incoming, send } from "./httpClient.ts"

const webhooks = "/v2/projects/p1/integrations/webhooks"
const extend = "2099-01-01T00:00:00.000Z"

/** All endpoints, with a body where they take one. */
const endpoints: ReadonlyArray<readonly [method: string, path: string, body?: object]> = [
  ["PATCH", "/memberships/1001/extend", { extend }],
  ["PATCH", "/memberships/extend", { extend }],
  ["POST", "/integrations/webhooks", { url: "https://receiver.example/" }],
  ["GET", "/integrations/webhooks"],
  ["DELETE", "/integrations/webhooks/6ba7b810-9dad-41d1-80b4-00c04fd430c8"],
]

/** A response without what differs between any two. */
const comparable = ({ body, headers, status }: Incoming, project: string) => {
  const { date: _date, ...rest } = headers
  const { path, request_id: _id, ...fields } = fieldsOf(body)
  return { status, headers: rest, fields, path: String(path).replace(project, "PROJECT") }
}

/** Declares the suite. */
export const accessSuite = (serving: Serving): void => {
  describe("authentication", () => {
    it(
      "is required on every endpoint",
      serving(async ({ url }) => {
        for (const [method, suffix] of endpoints) {
          const path = `/v2/projects/p1${suffix}`
          const response = await send(url, { method, path })
          expectFailure(response, method, path, 401, "UNAUTHORIZED")
          expect(response.headers["www-authenticate"]).toBe("Bearer")
        }
      }),
    )

    it(
      "needs a bearer token that is known",
      serving(async ({ call, token }) => {
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
          expectFailure(response, "GET", webhooks, 401, "UNAUTHORIZED")
        }
      }),
    )

    it(
      "takes the scheme in any case",
      serving(async ({ call, token }) => {
        for (const scheme of ["Bearer", "bearer", "BEARER", "bEaReR"]) {
          const headers = { authorization: `${scheme} ${token}` }
          expect((await call("GET", webhooks, { headers })).status).toBe(200)
        }
      }),
    )

    it(
      "is not ambiguous: two Authorization fields are refused, even if they are the same",
      serving(async ({ call, token }) => {
        for (const other of [token, "other"]) {
          const headers = { authorization: [`Bearer ${token}`, `Bearer ${other}`] }
          const response = await call("GET", webhooks, { headers })
          expect([400, 401]).toContain(response.status)
          expectHeaders(response)
        }
      }),
    )

    it(
      "ends with the revocation of a key, and with its expiry",
      serving(async ({ call, tenure }) => {
        const revoked = await tenure.apiKeys.issue({ projects: ["p1"] })
        const expired = await tenure.apiKeys.issue({ projects: ["p1"], expiresAt: Date.now() - 1 })
        const valid = await tenure.apiKeys.issue({
          projects: ["p1"],
          expiresAt: Date.now() + 60_000,
        })
        expect((await call("GET", webhooks, { token: revoked.token })).status).toBe(200)
        await tenure.apiKeys.revoke(revoked.id)
        const statuses = []
        for (const { token } of [revoked, expired, valid]) {
          statuses.push((await call("GET", webhooks, { token })).status)
        }
        expect(statuses).toEqual([401, 401, 200])
      }),
    )

    it(
      "comes before all else that the request may be wrong in",
      serving(async ({ url }) => {
        const response = await send(url, { method: "PROPFIND", path: webhooks, body: "{" })
        expectFailure(response, "PROPFIND", webhooks, 401, "UNAUTHORIZED")
      }),
    )
  })

  describe("projects", () => {
    it(
      "that a key does not open read exactly like projects that do not exist",
      serving(async ({ call }) => {
        for (const [method, suffix, body] of endpoints) {
          const foreign = await call(method, `/v2/projects/p2${suffix}`, { body })
          const missing = await call(method, `/v2/projects/p9${suffix}`, { body })
          expectFailure(foreign, method, `/v2/projects/p2${suffix}`, 404, "PROJECT_NOT_FOUND")
          const ignoringCounters = (response: Incoming, project: string) => {
            const one = comparable(response, project)
            const { "x-ratelimit-remaining": _r, "x-ratelimit-reset": _s, ...headers } = one.headers
            return { ...one, headers }
          }
          expect(ignoringCounters(foreign, "p2")).toEqual(ignoringCounters(missing, "p9"))
        }
      }),
    )

    it(
      "that a key does not open are not told from missing ones by a body that is wrong",
      serving(async ({ call }) => {
        for (const body of ["{", "[]", { extend: 1 }, {}]) {
          const path = "/v2/projects/p2/memberships/extend"
          const response = await call("PATCH", path, { body })
          expectFailure(response, "PATCH", path, 404, "PROJECT_NOT_FOUND")
        }
      }),
    )

    it(
      "may be opened by one key, several of them",
      serving(async ({ call, tenure }) => {
        const { token } = await tenure.apiKeys.issue({ projects: ["p1", "p2"] })
        for (const project of ["p1", "p2"]) {
          const path = `/v2/projects/${project}/integrations/webhooks`
          expect((await call("GET", path, { token })).status).toBe(200)
        }
      }),
    )

    it(
      "may have any name, however it looks in a path or a program",
      serving(async ({ call, tenure }) => {
        const names = ["__proto__", "constructor", "a/b", "a b", "日本", "100%", "...", "?#"]
        for (const name of names) {
          const path = `/v2/projects/${encodeURIComponent(name)}/integrations/webhooks`
          expect((await call("GET", path)).status).toBe(404)
          await tenure.memberships.createProject(name)
          const { token } = await tenure.apiKeys.issue({ projects: [name] })
          expect((await call("GET", path, { token })).status).toBe(200)
        }
      }),
    )
  })

  describe("paths", () => {
    it(
      "come after the base path",
      serving(
        async ({ call }) => {
          const response = await call("GET", `/api/members${webhooks}`)
          expect(response.body).toMatchObject({ code: 200, path: `/api/members${webhooks}` })
          expectElsewhere(await call("GET", webhooks))
        },
        { basePath: "/api/members" },
      ),
    )

    it(
      "in the envelope are without the query",
      serving(async ({ call }) => {
        const response = await call("GET", `${webhooks}?token=secret&x=/y`)
        expect(response.body).toMatchObject({ code: 200, path: webhooks })
        expect(response.text).not.toContain("secret&")
      }),
    )
  })

  describe("a path with dot segments", () => {
    it(
      "is not the API's",
      serving(async ({ call }) => {
        for (const dots of ["..", "%2e%2e", ".", "%2E"]) {
          expectElsewhere(await call("DELETE", `${webhooks}/${dots}`))
        }
      }),
    )
  })

  describe("the envelope", () => {
    it(
      "has an id of its own for each request",
      serving(async ({ call }) => {
        const ids = new Set<unknown>()
        for (let count = 0; count < 20; count++) {
          ids.add(fieldsOf((await call("GET", webhooks)).body)["request_id"])
        }
        expect(ids.size).toBe(20)
      }),
    )
  })
}
