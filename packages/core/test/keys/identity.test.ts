import { memory } from "@tenure/memory"
import { describe, expect, it } from "vitest"
import type { Fault } from "../../src/base/faults.ts"
import { type ApiRequest, emptyBody } from "../../src/http/request.ts"
import type { Authenticate, Identity } from "../../src/keys/identity.ts"
import { type Tenure, type TenureOptions, createTenure } from "../../src/tenure.ts"

const webhooks = "/v2/projects/p1/integrations/webhooks"

const request = (headers: ApiRequest["headers"] = {}): ApiRequest => ({
  method: "GET",
  path: webhooks,
  headers,
  body: emptyBody,
  remoteAddress: "203.0.113.7",
})

/** Makes a Tenure with the project `p1`. */
const make = async (options: TenureOptions) => {
  const tenure = await createTenure({ ...options, stores: memory() })
  await tenure.memberships.createProject("p1")
  return tenure
}

const alice: Identity = { keyId: "alice", projects: ["p1"] }

describe("a host's own authentication", () => {
  it.each<readonly [string, Authenticate<ApiRequest>]>([
    ["an identity", () => alice],
    ["a promise of an identity", () => Promise.resolve(alice)],
    ["an identity with a set of projects", () => ({ keyId: "alice", projects: new Set(["p1"]) })],
  ])("may return %s", async (_name, authenticate) => {
    const records: Array<string | undefined> = []
    const tenure = await make({
      authenticate,
      onResponse: ({ keyId }) => void records.push(keyId),
    })
    const response = await tenure.handle(request())
    expect([response.status, response.headers["X-RateLimit-Limit"]]).toEqual([200, "100"])
    expect(records).toEqual(["alice"])
    await tenure.close()
  })

  it.each(["null", "false", "0", '""'])("rejects a request by returning %s", async (json) => {
    const tenure = await make({ authenticate: () => JSON.parse(json) })
    expect((await tenure.handle(request())).status).toBe(401)
    await tenure.close()
  })

  it("replaces API keys", async () => {
    const tenure = await make({ authenticate: () => undefined })
    const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })
    const response = await tenure.handle(request({ authorization: `Bearer ${token}` }))
    expect([response.status, response.headers["X-RateLimit-Limit"]]).toEqual([401, "300"])
    await tenure.close()
  })

  it("can check API keys itself", async () => {
    const tenure: Tenure = await make({
      authenticate: async ({ headers }) => {
        if (headers["cookie"] === "session=alice") return alice
        const key = await tenure.apiKeys.authenticate(String(headers["x-api-key"]))
        return key && { keyId: key.id, projects: key.projects }
      },
    })
    const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })
    const statuses = await Promise.all(
      [{ cookie: "session=alice" }, { "x-api-key": token }, { "x-api-key": "other" }].map(
        async (headers) => (await tenure.handle(request(headers))).status,
      ),
    )
    expect(statuses).toEqual([200, 200, 401])
    await tenure.close()
  })

  it("of an adapter takes precedence over that of the options", async () => {
    const tenure = await make({ authenticate: () => undefined })
    const response = await tenure.handle({ ...request(), authenticate: () => alice })
    expect(response.status).toBe(200)
    await tenure.close()
  })

  it("may open all projects, with any role", async () => {
    const boss: Identity = { keyId: "boss", projects: "all", role: "admin" }
    const tenure = await make({ authenticate: () => boss })
    expect((await tenure.handle(request())).status).toBe(200)
    await tenure.close()
  })

  it("may only read, whatever its role may", async () => {
    const auditor: Identity = { keyId: "auditor", projects: ["p1"], role: "admin", readOnly: true }
    const tenure = await make({ authenticate: () => auditor })
    const ask = async (method: string, path: string) =>
      (await tenure.handle({ ...request(), method, path })).status
    expect(await ask("GET", webhooks)).toBe(200)
    expect(await ask("GET", "/v2/api-keys")).toBe(200)
    for (const method of ["PUT", "DELETE"]) expect(await ask(method, "/v2/projects/p1")).toBe(403)
    expect(await ask("POST", webhooks)).toBe(403)
    expect(await ask("PATCH", "/v2/projects/p1/memberships/extend")).toBe(403)
    await tenure.close()
  })

  it("opens only the projects that it names", async () => {
    const tenure = await make({ authenticate: () => ({ keyId: "bob", projects: ["p2"] }) })
    expect((await tenure.handle(request())).status).toBe(404)
    await tenure.close()
  })

  it("names the origin of changes in the audit trail", async () => {
    const tenure = await make({ authenticate: () => alice })
    const { memberships } = tenure
    await memberships.grant({ projectId: "p1", userId: "1", endDate: "2027-01-01T00:00:00.000Z" })
    await tenure.handle({
      ...request(),
      method: "PATCH",
      path: "/v2/projects/p1/memberships/1/extend",
      body: { _tag: "Parsed", value: { extend: "2099-01-01T00:00:00.000Z" } },
    })
    const [newest] = await memberships.history({ projectId: "p1" })
    expect(newest).toMatchObject({ action: "extended", origin: { keyId: "alice" } })
    await tenure.close()
  })

  it.each<readonly [string, Authenticate<ApiRequest>]>([
    [
      "throws",
      () => {
        throw new Error("no database")
      },
    ],
    ["rejects", () => Promise.reject(new Error("no database"))],
    ["returns an empty keyId", () => ({ keyId: "", projects: [] })],
    ["returns no keyId", () => JSON.parse('{"projects":["p1"]}')],
    ["returns a keyId that is not text", () => JSON.parse('{"keyId":7,"projects":["p1"]}')],
    ["returns an unknown role", () => JSON.parse('{"keyId":"a","projects":[],"role":"owner"}')],
    ["returns text in place of projects", () => JSON.parse('{"keyId":"a","projects":"p1"}')],
    ["returns projects that are not text", () => JSON.parse('{"keyId":"a","projects":[["p1"]]}')],
    [
      "returns text in place of readOnly",
      () => JSON.parse('{"keyId":"a","projects":[],"readOnly":"no"}'),
    ],
    ["returns a keyId with a control character", () => ({ keyId: "a\n", projects: [] })],
  ])(
    "is at fault if it %s: the response is 500, and onError is called",
    async (_name, authenticate) => {
      const faults: Array<Fault> = []
      const tenure = await make({ authenticate, onError: (fault) => void faults.push(fault) })
      const response = await tenure.handle(request())
      expect(response.status).toBe(500)
      expect(response.body).not.toContain("database")
      const { request_id: requestId } = JSON.parse(String(response.body))
      expect(faults).toMatchObject([{ cause: expect.any(Error), requestId, isDefect: true }])
      await tenure.close()
    },
  )
})
