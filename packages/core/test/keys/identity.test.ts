import { memory } from "@tenure/memory"
import { describe, expect, it } from "vitest"
import type { Fault } from "../../src/base/faults.ts"
import { type ApiRequest, emptyBody } from "../../src/http/request.ts"
import { type Authenticate, type Identity, toPrincipal } from "../../src/keys/identity.ts"
import { type Tenure, type TenureOptions, createTenure } from "../../src/tenure.ts"

const webhooks = "/v2/projects/p1/integrations/webhooks"

const request = (headers: ApiRequest["headers"] = {}): ApiRequest => ({
  method: "GET",
  path: webhooks,
  headers,
  body: emptyBody,
  remoteAddress: "203.0.113.7",
})

/** Runs with Tenure and project `p1`. */
const withTenure = async (options: TenureOptions, run: (tenure: Tenure) => Promise<void>) => {
  const tenure = await createTenure({ ...options, stores: memory() })
  await tenure.memberships.createProject("p1")
  await run(tenure)
  await tenure.close()
}

const alice: Identity = { keyId: "alice", projects: ["p1"] }

describe("a host's own authentication", () => {
  it.each<readonly [number, string, Authenticate<ApiRequest>]>([
    [200, "an identity", () => alice],
    [200, "a promise of an identity", () => Promise.resolve(alice)],
    [200, "one with a set of projects", () => ({ keyId: "alice", projects: new Set(["p1"]) })],
    [
      200,
      "one for all projects, of any role",
      () => ({ ...alice, projects: "all", role: "admin" }),
    ],
    [404, "one for another project", () => ({ ...alice, projects: ["p2"] })],
    ...["null", "false", "0", '""'].map((json) => [401, json, () => JSON.parse(json)] as const),
  ])("is answered %d if it returns %s", async (expected, _name, authenticate) => {
    const records: Array<string | undefined> = []
    const onResponse: TenureOptions["onResponse"] = ({ keyId }) => void records.push(keyId)
    await withTenure({ authenticate, onResponse }, async (tenure) => {
      const { headers, status } = await tenure.handle(request())
      const isKnown = expected !== 401
      expect([status, headers["X-RateLimit-Limit"]]).toEqual([expected, isKnown ? "100" : "300"])
      expect(records).toEqual([isKnown ? "alice" : undefined])
    })
  })

  it("replaces API keys, and that of an adapter replaces it", () =>
    withTenure({ authenticate: () => undefined }, async (tenure) => {
      const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })
      const { status } = await tenure.handle(request({ authorization: `Bearer ${token}` }))
      expect(status).toBe(401)
      const response = await tenure.handle({ ...request(), authenticate: () => alice })
      expect(response.status).toBe(200)
    }))

  it("can check API keys itself, and changes name the key", () =>
    withTenure({}, async ({ apiKeys, handle, memberships }) => {
      const { id, token } = await apiKeys.issue({ projects: ["p1"] })
      const member = { projectId: "p1", userId: "1" }
      await memberships.grant({ ...member, endDate: "2027-01-01T00:00:00.000Z" })
      const extend = (given: string) =>
        handle({
          ...request(),
          method: "PATCH",
          path: "/v2/projects/p1/memberships/1/extend",
          body: { _tag: "Parsed", value: { extend: "2099-01-01T00:00:00.000Z" } },
          authenticate: async () => {
            const key = await apiKeys.authenticate(given)
            return key && { keyId: `the host's ${key.id}`, projects: key.projects }
          },
        })
      expect((await extend("other")).status).toBe(401)
      expect((await extend(token)).status).toBe(200)
      const [newest] = await memberships.history(member)
      expect(newest).toMatchObject({ action: "extended", origin: { keyId: `the host's ${id}` } })
    }))

  it("may only read, whatever its role may", () => {
    const authenticate = () => ({ ...alice, role: "admin", readOnly: true }) as const
    return withTenure({ authenticate }, async (tenure) => {
      for (const [method, path, status] of [
        ["GET", webhooks, 200],
        ["GET", "/v2/api-keys", 200],
        ["PUT", "/v2/projects/p1", 403],
        ["DELETE", "/v2/projects/p1", 403],
        ["POST", webhooks, 403],
        ["PATCH", "/v2/projects/p1/memberships/extend", 403],
      ] as const) {
        expect((await tenure.handle({ ...request(), method, path })).status).toBe(status)
      }
    })
  })

  const error = new Error("no database")
  it.each<readonly [string, Authenticate<ApiRequest>]>([
    [
      "throws",
      () => {
        throw error
      },
    ],
    ["rejects", () => Promise.reject(error)],
    ["returns an invalid identity", () => ({ keyId: "", projects: [] })],
  ])(
    "that %s is at fault: the response is 500, and onError is called",
    async (_name, authenticate) => {
      const faults: Array<Fault> = []
      const onError = (fault: Fault) => void faults.push(fault)
      await withTenure({ authenticate, onError }, async (tenure) => {
        const response = await tenure.handle(request())
        expect(response.status).toBe(500)
        expect(response.body).not.toContain("database")
        const { request_id: requestId } = JSON.parse(String(response.body))
        expect(faults).toMatchObject([{ cause: expect.any(Error), requestId, isDefect: true }])
      })
    },
  )
})

it.each([
  ["an empty keyId", { keyId: "" }],
  ["no keyId", { keyId: undefined }],
  ["a keyId that is not text", { keyId: 7 }],
  ["a keyId with a control character", { keyId: "a\n" }],
  ["an unknown role", { role: "owner" }],
  ["text in place of projects", { projects: "p1" }],
  ["projects that are not text", { projects: [["p1"]] }],
  ["text in place of readOnly", { readOnly: "no" }],
])("an identity is invalid with %s", (_name, change) => {
  const identity = JSON.parse("0", () => ({ ...alice, ...change }))
  expect(() => toPrincipal(identity)).toThrow(TypeError)
})
