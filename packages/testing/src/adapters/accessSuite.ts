/** Authentication, projects, paths and request ids. */

import { describe, expect, it } from "vitest"
import { expectElsewhere, expectFailure, expectHeaders, fieldsOf } from "../support/envelope.ts"
import { type Incoming, send } from "../support/httpClient.ts"
import type { Serving } from "./AdapterHarness.ts"

const webhooks = "/v2/projects/p1/integrations/webhooks"
const extend = "2099-01-01T00:00:00.000Z"

/** All endpoints, with a body if they accept one. */
const endpoints: ReadonlyArray<readonly [method: string, path: string, body?: object]> = [
  ["PATCH", "/memberships/1001/extend", { extend }],
  ["PATCH", "/memberships/extend", { extend }],
  ["POST", "/integrations/webhooks", { url: "https://receiver.example/" }],
  ["GET", "/integrations/webhooks"],
  ["DELETE", "/integrations/webhooks/6ba7b810-9dad-41d1-80b4-00c04fd430c8"],
]

/** A response without the fields that differ between any two. */
const comparable = ({ body, headers, status }: Incoming, project: string) => {
  const { date: _date, ...rest } = headers
  const { path, request_id: _id, ...fields } = fieldsOf(body)
  return { status, headers: rest, fields, path: String(path).replace(project, "PROJECT") }
}

const tokenTests = (serving: Serving): void => {
  it(
    "is required by every endpoint",
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
    "accepts only a known bearer token",
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
    "accepts the scheme in upper and lower case",
    serving(async ({ call, token }) => {
      for (const scheme of ["Bearer", "bearer", "BEARER", "bEaReR"]) {
        const headers = { authorization: `${scheme} ${token}` }
        expect((await call("GET", webhooks, { headers })).status).toBe(200)
      }
    }),
  )

  it(
    "refuses two Authorization fields, even if they are identical",
    serving(async ({ call, token }) => {
      for (const other of [token, "other"]) {
        const headers = { authorization: [`Bearer ${token}`, `Bearer ${other}`] }
        const response = await call("GET", webhooks, { headers })
        expect([400, 401]).toContain(response.status)
        expectHeaders(response)
      }
    }),
  )
}

const keyTests = (serving: Serving): void => {
  it(
    "fails after a key is revoked or has expired",
    serving(async ({ call, tenure }) => {
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
    }),
  )

  it(
    "is checked before anything else in the request",
    serving(async ({ url }) => {
      const response = await send(url, { method: "PROPFIND", path: webhooks, body: "{" })
      expectFailure(response, "PROPFIND", webhooks, 401, "UNAUTHORIZED")
    }),
  )
}

const authenticationTests = (serving: Serving): void => {
  describe("authentication", () => {
    tokenTests(serving)
    keyTests(serving)
  })
}

const projectTests = (serving: Serving): void => {
  describe("a project", () => {
    it(
      "that the key does not open looks exactly like one that does not exist",
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
      "that the key does not open looks missing also when the body is invalid",
      serving(async ({ call }) => {
        for (const body of ["{", "[]", { extend: 1 }, {}]) {
          const path = "/v2/projects/p2/memberships/extend"
          const response = await call("PATCH", path, { body })
          expectFailure(response, "PATCH", path, 404, "PROJECT_NOT_FOUND")
        }
      }),
    )

    it(
      "can share a key with other projects",
      serving(async ({ call, tenure }) => {
        const { token } = await tenure.apiKeys.issue({ projects: ["p1", "p2"] })
        for (const project of ["p1", "p2"]) {
          const path = `/v2/projects/${project}/integrations/webhooks`
          expect((await call("GET", path, { token })).status).toBe(200)
        }
      }),
    )

    it(
      "can have any name that can be percent-encoded",
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
}

const pathTests = (serving: Serving): void => {
  describe("a path", () => {
    it(
      "starts with the base path",
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
      "appears in the envelope without the query",
      serving(async ({ call }) => {
        const response = await call("GET", `${webhooks}?token=secret&x=/y`)
        expect(response.body).toMatchObject({ code: 200, path: webhooks })
        expect(response.text).not.toContain("secret&")
      }),
    )
  })
}

const absoluteTests = (serving: Serving): void => {
  describe("a target in absolute form", () => {
    it(
      "counts as its path, with a query or a fragment",
      serving(async ({ call }) => {
        for (const end of ["", "?a", "#a", "?a#b", "#/", "#?"]) {
          const response = await call("GET", `http://localhost${webhooks}${end}`)
          expect(response.body).toMatchObject({ code: 200, path: webhooks })
        }
      }),
    )
  })
}

const dotSegmentsTests = (serving: Serving): void => {
  describe("a path with dot segments", () => {
    it(
      "is outside the API",
      serving(async ({ call }) => {
        for (const dots of ["..", "%2e%2e", ".", "%2E"]) {
          expectElsewhere(await call("DELETE", `${webhooks}/${dots}`))
        }
      }),
    )
  })
}

const envelopeTests = (serving: Serving): void => {
  describe("the envelope", () => {
    it(
      "has a different request id in each response",
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

/** Declares the tests. */
export const accessSuite = (serving: Serving): void => {
  authenticationTests(serving)
  projectTests(serving)
  pathTests(serving)
  absoluteTests(serving)
  dotSegmentsTests(serving)
  envelopeTests(serving)
}
