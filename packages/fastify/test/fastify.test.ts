import { once } from "node:events"
import { type TenureOptions, createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { attachRealtime, nodeTransport } from "@tenure/node-http"
import { adapterSuite, send } from "@tenure/testing/conformance"
import fastify, { type FastifyServerOptions } from "fastify"
import { describe, expect, it, onTestFinished } from "vitest"
import { membershipPlugin } from "../src/index.ts"
import { host } from "./host.ts"

adapterSuite("Fastify 5", { ...host, testsOperations: false })

const extend = "2099-01-01T00:00:00.000Z"
const path = "/v2/projects/p1/memberships/1001/extend"
const webhooks = "/v2/projects/p1/integrations/webhooks"

/** An app with a member until the test has finished, and a function to extend it. */
const backend = async (options: FastifyServerOptions = {}, more: TenureOptions = {}) => {
  const app = fastify(options)
  const tenure = await createTenure({ ...more, stores: memory(), transport: nodeTransport })
  onTestFinished(async () => {
    await app.close()
    await tenure.close()
  })
  await tenure.memberships.createProject("p1")
  await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: extend })
  const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })
  const headers = { authorization: `Bearer ${token}` }
  const call = (url = path) => app.inject({ method: "PATCH", url, headers, body: { extend } })
  return { app, call, headers, tenure }
}

describe("in a Fastify backend", () => {
  it("the plugin answers injected requests, with the headers that hooks of the host set", async () => {
    const { app, call, tenure } = await backend()
    app.addHook("onRequest", async (_request, reply) => void reply.header("x-host", "1"))
    app.addHook("onSend", async (_request, reply) => void reply.header("x-sent", "1"))
    await app.register(membershipPlugin, { tenure })
    const response = await call()
    expect(response.json()).toMatchObject({ code: 200, path, total: 1 })
    expect(response.headers).toMatchObject({ "x-host": "1", "x-sent": "1" })
  })

  it("errors of the host's hooks go to the host's error handler", async () => {
    const { app, call, tenure } = await backend()
    app.setErrorHandler((error, _request, reply) => reply.code(418).send(String(error)))
    app.addHook("preHandler", async () => {
      throw new Error("not today")
    })
    await app.register(membershipPlugin, { tenure })
    const response = await call()
    expect([response.statusCode, response.body]).toEqual([418, "Error: not today"])
  })

  it("guards of the host run first, whatever the content type", async () => {
    const { app, headers, tenure } = await backend()
    app.addHook("preHandler", async (_request, reply) => reply.code(403).send("not you"))
    await app.register(membershipPlugin, { tenure })
    const url = `${webhooks}/6ba7b810-9dad-41d1-80b4-00c04fd430c8`
    for (const type of ["x", "", ";", "application/json", "a/b;;", "text/"]) {
      const response = await app.inject({
        method: "DELETE",
        url,
        headers: { ...headers, "content-type": type },
      })
      expect([403, 415]).toContain(response.statusCode)
      expect(response.body).not.toContain("request_id")
    }
  })

  it("two plugins under two prefixes answer unknown methods and invalid paths", async () => {
    const { app, tenure } = await backend()
    const { tenure: other } = await backend()
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
    const own = { method: "POST", path: `/other${path}` }
    expect((await send(url, own)).body).toEqual({ method: "POST", url: own.path })
  })

  it("the listener of the plugin is removed when the app closes", async () => {
    const { app, tenure } = await backend()
    await app.register(membershipPlugin, { tenure })
    await app.ready()
    const before = app.server.listenerCount("request")
    await app.close()
    expect(app.server.listenerCount("request")).toBe(before - 1)
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
  })

  it("the prefix may contain parameters", async () => {
    const { app, call, tenure } = await backend()
    await app.register(membershipPlugin, { prefix: "/:tenant/api", tenure })
    const url = `/acme/api${path}`
    expect((await call(url)).json()).toMatchObject({ code: 200, path: url })
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
    const list = (headers: Record<string, string>) => app.inject({ url: webhooks, headers })
    expect((await list({ cookie: "alice" })).statusCode).toBe(200)
    expect((await list({})).statusCode).toBe(401)
  })

  it("requests are counted by request.ip if useFastifyIp is true", async () => {
    // No token comes back during the test.
    const rateLimits = { perAddress: { limit: 300, window: "1 day" } } as const
    const { app, tenure } = await backend({ trustProxy: true }, { rateLimits })
    await app.register(membershipPlugin, { tenure, useFastifyIp: true })
    for (const [client, remaining] of [
      ["203.0.113.1", "299"],
      ["203.0.113.1", "298"],
      ["203.0.113.2", "299"],
      // Some proxies add the port.
      ["203.0.113.2:4711", "298"],
      // An invalid address counts as the socket's.
      ["one", "299"],
      ["two", "298"],
    ] as const) {
      const response = await app.inject({ url: path, headers: { "x-forwarded-for": client } })
      expect(response.headers["x-ratelimit-remaining"]).toBe(remaining)
    }
  })

  it("the server follows the feed by WebSocket, and closes with its connections", async () => {
    const authenticate = () => ({ keyId: "ann", projects: ["p1"] })
    const { app, tenure } = await backend({}, { authenticate })
    await app.register(membershipPlugin, { tenure })
    const realtime = attachRealtime(app.server, tenure)
    app.addHook("preClose", async () => realtime.close())
    const url = await app.listen()
    const socket = new WebSocket(`${url.replace("http", "ws")}/v2/realtime`, "tenure.v1")
    await once(socket, "open")
    socket.send(JSON.stringify({ type: "subscribe", project: "p1" }))
    const [{ data }] = await once(socket, "message")
    expect(JSON.parse(data)).toMatchObject({ type: "cursor" })
    const closed = once(socket, "close")
    await app.close()
    const [{ code }] = await closed
    expect(code).toBe(1001)
  })

  it.each([
    ['{"useFastifyIP":true}', "useFastifyIP"],
    ['{"useFastifyIp":"yes"}', "useFastifyIp"],
    ['{"authenticate":true}', "authenticate"],
  ])("the options %s are refused by name", async (options, field) => {
    const { app, tenure } = await backend()
    const ready = app.register(membershipPlugin, { ...JSON.parse(options), tenure }).after()
    await expect(ready).rejects.toMatchObject({ _tag: "InvalidInput", field })
  })

  it("the options of register are Fastify's own", async () => {
    const { app, tenure } = await backend()
    const own = { prefix: "/members", logLevel: "warn", logSerializers: {} } as const
    await app.register(membershipPlugin, { ...own, tenure })
  })

  it("a missing await is a clear error", async () => {
    const { app } = await backend()
    const tenure = createTenure({ stores: memory() })
    // @ts-expect-error: plain JavaScript does not notice.
    await expect(app.register(membershipPlugin, { tenure }).after()).rejects.toThrow(
      "tenure is a promise: write `await createTenure(…)`",
    )
    await (await tenure).close()
  })
})
