import { createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { nodeTransport } from "@tenure/node-http"
import { adapterSuite, send } from "@tenure/testing/conformance"
import fastify from "fastify"
import { describe, expect, it } from "vitest"
import { membershipPlugin } from "../src/index.ts"
import { host } from "./host.ts"

adapterSuite("Fastify 5", { ...host, testsOperations: false })

describe("in a Fastify backend", () => {
  const extend = "2099-01-01T00:00:00.000Z"
  const path = "/v2/projects/p1/memberships/1001/extend"

  /** An app with a member, and the headers that authenticate a request. */
  const backend = async () => {
    const tenure = await createTenure({ stores: memory(), transport: nodeTransport })
    await tenure.memberships.createProject("p1")
    await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: extend })
    const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })
    return { app: fastify(), tenure, headers: { authorization: `Bearer ${token}` } }
  }

  it("the plugin answers injected requests, which need no server", async () => {
    const { app, headers, tenure } = await backend()
    await app.register(membershipPlugin, { tenure })
    const response = await app.inject({ method: "PATCH", url: path, headers, body: { extend } })
    expect(response.json()).toMatchObject({ code: 200, path, total: 1 })
    await tenure.close()
  })

  it("hooks of the host run, and the headers that they set are sent", async () => {
    const { app, headers, tenure } = await backend()
    app.addHook("onRequest", async (_request, reply) => void reply.header("x-host", "1"))
    app.addHook("onSend", async (_request, reply) => void reply.header("x-sent", "1"))
    await app.register(membershipPlugin, { tenure })
    const response = await app.inject({ method: "PATCH", url: path, headers, body: { extend } })
    expect(response.headers).toMatchObject({ "x-host": "1", "x-sent": "1" })
    await tenure.close()
  })

  it("errors of the host's hooks go to the host's error handler", async () => {
    const { app, headers, tenure } = await backend()
    app.setErrorHandler((error, _request, reply) => reply.code(418).send(String(error)))
    app.addHook("preHandler", async () => {
      throw new Error("not today")
    })
    await app.register(membershipPlugin, { tenure })
    const response = await app.inject({ method: "PATCH", url: path, headers, body: { extend } })
    expect([response.statusCode, response.body]).toEqual([418, "Error: not today"])
    await tenure.close()
  })

  it("guards of the host run first, whatever the content type", async () => {
    const { app, headers, tenure } = await backend()
    app.addHook("preHandler", async (_request, reply) => reply.code(403).send("not you"))
    await app.register(membershipPlugin, { tenure })
    const url = "/v2/projects/p1/integrations/webhooks/6ba7b810-9dad-41d1-80b4-00c04fd430c8"
    for (const type of ["x", "", ";", "application/json", "a/b;;", "text/"]) {
      const response = await app.inject({
        method: "DELETE",
        url,
        headers: { ...headers, "content-type": type },
      })
      expect([403, 415]).toContain(response.statusCode)
      expect(response.body).not.toContain("request_id")
    }
    await tenure.close()
  })

  it("two plugins under two prefixes answer unknown methods and invalid paths", async () => {
    const { app, tenure } = await backend()
    const other = await createTenure({ stores: memory(), transport: nodeTransport })
    await app.register(membershipPlugin, { prefix: "/a", tenure })
    await app.register(membershipPlugin, { prefix: "/b/", tenure: other })
    app.all("/other/*", async ({ method, url }) => ({ method, url }))
    const url = await app.listen({ port: 0, host: "127.0.0.1" })
    for (const prefix of ["/a", "/b"]) {
      for (const [method, suffix] of [
        ["PURGE", path],
        ["PATCH", "/v2/projects/p1/memberships/%zz/extend"],
      ] as const) {
        const response = await send(url, { method, path: `${prefix}${suffix}` })
        expect(response.body).toMatchObject({ code: 401, method, path: `${prefix}${suffix}` })
      }
    }
    const own = `/other${path}`
    expect((await send(url, { method: "POST", path: own })).body).toEqual({
      method: "POST",
      url: own,
    })
    await app.close()
    await Promise.all([tenure.close(), other.close()])
  })

  it("the listener of the plugin is removed when the app closes", async () => {
    const { app, tenure } = await backend()
    await app.register(membershipPlugin, { tenure })
    await app.ready()
    const before = app.server.listenerCount("request")
    await app.close()
    expect(app.server.listenerCount("request")).toBe(before - 1)
    await tenure.close()
  })

  it("routes of the host next to the API stay reachable", async () => {
    const { app, headers, tenure } = await backend()
    await app.register(membershipPlugin, { tenure })
    app.all("/*", async () => "all else")
    app.get("/v2/projects/:id/settings", async () => "own")
    app.post("/v2/:collection/:id/plans", async ({ body }) => body)
    expect((await app.inject({ url: "/v2/projects/p1/settings", headers })).body).toBe("own")
    expect((await app.inject({ url: "/v2/projects/p1/others", headers })).body).toBe("all else")
    const plan = { method: "POST", url: "/v2/projects/p1/plans", body: { a: 1 } } as const
    expect((await app.inject(plan)).json()).toEqual({ a: 1 })
    await tenure.close()
  })

  it("the prefix may contain parameters", async () => {
    const { app, headers, tenure } = await backend()
    await app.register(membershipPlugin, { prefix: "/:tenant/api", tenure })
    const url = `/acme/api${path}`
    const response = await app.inject({ method: "PATCH", url, headers, body: { extend } })
    expect(response.json()).toMatchObject({ code: 200, path: url })
    await tenure.close()
  })

  it("requests are authenticated by sessions that a hook has found", async () => {
    const { app, tenure } = await backend()
    app.decorateRequest("user", "")
    app.addHook("onRequest", async (request) => {
      request.setDecorator("user", request.headers.cookie ?? "")
    })
    await app.register(membershipPlugin, {
      tenure,
      authenticate: async (request) => {
        const user = request.getDecorator<string>("user")
        return user === "" ? undefined : { keyId: user, projects: ["p1"] }
      },
    })
    const list = (cookie?: string) =>
      app.inject({
        url: "/v2/projects/p1/integrations/webhooks",
        headers: cookie === undefined ? {} : { cookie },
      })
    expect((await list("alice")).statusCode).toBe(200)
    expect((await list()).statusCode).toBe(401)
    await tenure.close()
  })

  it("requests are counted by request.ip if useFastifyIp is true", async () => {
    const { tenure } = await backend()
    const app = fastify({ trustProxy: true })
    await app.register(membershipPlugin, { tenure, useFastifyIp: true })
    const remaining = async (client: string) => {
      const response = await app.inject({ url: path, headers: { "x-forwarded-for": client } })
      return response.headers["x-ratelimit-remaining"]
    }
    expect(await remaining("203.0.113.1")).toBe("299")
    expect(await remaining("203.0.113.1")).toBe("298")
    expect(await remaining("203.0.113.2")).toBe("299")
    // Some proxies add the port.
    expect(await remaining("203.0.113.2:4711")).toBe("298")
    // What is not an address counts as the socket's.
    expect(await remaining("one")).toBe("299")
    expect(await remaining("two")).toBe("298")
    await tenure.close()
  })
})
