/** The server as a process: its settings, its log, its signals, and the receiver of the examples. */

import { execFile } from "node:child_process"
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { connect, createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { promisify } from "node:util"
import { freePort, send, startReceiver } from "@tenure/testing/conformance"
import { afterAll, afterEach, describe, expect, it } from "vitest"
import { endAll, start, startServer } from "./programs.ts"

const run = promisify(execFile)

afterEach(endAll)

const extend = "2099-01-01T00:00:00.000Z"

const folder = await mkdtemp(join(tmpdir(), "tenure-"))
afterAll(() => rm(folder, { recursive: true }))

const seedFile = async (content: unknown): Promise<string> => {
  const path = join(folder, `${randomUUID()}.json`)
  await writeFile(path, typeof content === "string" ? content : JSON.stringify(content))
  return path
}

const seed = {
  projects: [
    {
      id: "p1",
      memberships: [{ user_id: "1001", end_date: "2027-01-01T00:00:00.000Z" }],
      api_keys: ["token-1", "token-both"],
    },
    { id: "p2", api_keys: ["token-both"] },
    { id: "p3" },
  ],
}

const call = (
  url: string,
  token: string,
  method: string,
  path: string,
  body?: object,
  headers: Readonly<Record<string, string>> = {},
) =>
  send(url, {
    method,
    path,
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      ...headers,
    },
    ...(body && { body: JSON.stringify(body) }),
  })

it("a server follows the feed by WebSocket", async () => {
  const server = await startServer({ SEED_FILE: await seedFile(seed) })
  const projects = ["p1"]
  const issued = await call(server.url, "token-1", "POST", "/v2/realtime/tickets", { projects })
  const { ticket } = Object(issued.body).data
  const url = `${server.url.replace("http", "ws")}/v2/realtime?ticket=${ticket}`
  const socket = new WebSocket(url, "tenure.v1")
  await once(socket, "open")
  socket.send(JSON.stringify({ type: "subscribe", project: "p1" }))
  const [{ data }] = await once(socket, "message")
  expect(JSON.parse(data)).toMatchObject({ type: "cursor" })
  socket.close()
})

describe("a server without settings", () => {
  it("has a demo project, and prints a working curl command for each endpoint", async () => {
    const server = await startServer()
    await server.line(/^# Delete the first of them$/)
    await server.line(/^curl '[^']*\/v2\/api-keys'/)
    const curls = server.lines.filter((line) => line.startsWith("curl"))
    expect(curls).toHaveLength(6)
    const results = []
    for (const curl of curls) {
      const { stdout } = await run("sh", ["-c", curl.replace("curl ", "curl -s ")])
      results.push(JSON.parse(stdout))
    }
    expect(results).toMatchObject([
      { code: 200, method: "PATCH", total: 1 },
      { code: 200, method: "PATCH", total: 3 },
      { code: 200, method: "POST", data: { secret: expect.stringMatching(/^whsec_/) } },
      { code: 200, method: "GET", total: 1 },
      { code: 200, method: "DELETE", data: null },
      { code: 200, method: "GET", data: [{ role: "client" }, { role: "admin", projects: "all" }] },
    ])
  })

  it("leads browsers to the console, and nobody else", async () => {
    for (const environment of [{}, { BASE_PATH: "/api" }]) {
      const { url } = await startServer(environment)
      const root = new URL("/", url)
      const get = (accept: string) => fetch(root, { headers: { accept }, redirect: "manual" })
      const { headers, status } = await get("text/html,application/xhtml+xml;q=0.9")
      expect(status).toBe(302)
      const console = new URL(headers.get("location") ?? "", root)
      expect(console.href).toBe(`${url}/console/`)
      expect(await (await fetch(console)).text()).toContain("<html")
      expect((await get("*/*")).status).toBe(404)
    }
  })

  it("creates new API keys each time, in memory", async () => {
    const tokenOf = async () => {
      const server = await startServer()
      const [token] = await server.line(/tnr_[A-Za-z0-9_-]+/)
      return token
    }
    expect(await tokenOf()).not.toBe(await tokenOf())
  })
})

describe("a seed file", () => {
  it("creates projects, memberships and API keys", async () => {
    const { url } = await startServer({ SEED_FILE: await seedFile(seed) })
    const one = "/v2/projects/p1/memberships/1001/extend"
    expect((await call(url, "token-1", "PATCH", one, { extend })).status).toBe(200)
    const webhooks = (project: string) => `/v2/projects/${project}/integrations/webhooks`
    const status = async (token: string, project: string) =>
      (await call(url, token, "GET", webhooks(project))).status
    expect(await status("token-1", "p1")).toBe(200)
    expect(await status("token-1", "p2")).toBe(404)
    expect(await status("token-both", "p1")).toBe(200)
    expect(await status("token-both", "p2")).toBe(200)
    expect(await status("token-both", "p3")).toBe(404)
    expect(await status("unknown", "p1")).toBe(401)
  })

  it("gives keys their roles, within a project or for all", async () => {
    const { url } = await startServer({
      SEED_FILE: await seedFile({
        projects: [
          {
            id: "p1",
            memberships: [{ user_id: "1", end_date: extend, metadata: { plan: "gold" } }],
            api_keys: ["a client", { token: "an operator", role: "operator", name: "Ada" }],
          },
          { id: "p2", api_keys: ["a client"] },
        ],
        api_keys: [{ token: "an admin", role: "admin" }],
      }),
    })
    const { body } = await call(url, "an admin", "GET", "/v2/api-keys")
    expect(Object(body).data).toMatchObject([
      { role: "client", projects: ["p1", "p2"] },
      { role: "operator", projects: ["p1"], name: "Ada" },
      { role: "admin", projects: "all" },
    ])
    expect((await call(url, "an operator", "GET", "/v2/api-keys")).status).toBe(403)
    const member = await call(url, "an operator", "GET", "/v2/projects/p1/memberships/1")
    expect(member.body).toMatchObject({ data: { metadata: { plan: "gold" } } })
  })

  it("may repeat entries", async () => {
    const twice = { projects: [...seed.projects, ...seed.projects] }
    const { url } = await startServer({ SEED_FILE: await seedFile(twice) })
    const all = "/v2/projects/p1/memberships/extend"
    expect((await call(url, "token-1", "PATCH", all, { extend })).body).toMatchObject({ total: 1 })
  })

  it("that is invalid stops the server with a message, and shows nothing of it", async () => {
    const SEED_FILE = await seedFile({ projects: [{ id: "p", api_key: ["secret"] }] })
    const { code, stderr } = await start("node-server", { PORT: "0", SEED_FILE }).ended
    expect(code).toBe(1)
    expect(stderr).toMatch(/0: api_key: there is no such field/)
    expect(stderr).not.toMatch(/^\s+at /m)
    expect(stderr).not.toContain("secret")
  })
})

describe("a setting that does not work", () => {
  it.each([
    ["RATE_LIMIT_PER_KEY", "many"],
    ["SEED_FILE", "/does/not/exist.json"],
    ["HOST", "no such host.invalid"],
  ])("%s=%s stops the server with a message that names it", async (name, value) => {
    const { code, stderr } = await start("node-server", { PORT: "0", [name]: value }).ended
    expect(code).toBe(1)
    expect(stderr).toContain(name)
    expect(stderr).not.toMatch(/^\s+at /m)
  })

  it("that is a port in use stops the server with a message", async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve))
    const address = other.address()
    const port = String(typeof address === "object" ? address?.port : "")
    const { code, stderr } = await start("node-server", { PORT: port }).ended
    other.close()
    expect([code, stderr]).toEqual([1, expect.stringContaining("EADDRINUSE")])
  })
})

describe("the settings", () => {
  it("move the API under a base path, but not the health checks", async () => {
    const server = await startServer({ BASE_PATH: "/api/" })
    const { url } = server
    expect(url).toMatch(/:\d+\/api$/)
    const [curl] = await server.line(/^curl -X PATCH.*/)
    expect(curl).toContain(`'${url}/v2/projects/demo/`)
    const { stdout } = await run("sh", ["-c", curl.replace("curl ", "curl -s ")])
    expect(JSON.parse(stdout)).toMatchObject({ code: 200 })
    const path = "/v2/projects/demo/integrations/webhooks"
    expect((await send(url, { path: `/api${path}` })).status).toBe(401)
    expect((await send(url, { path: "/healthz" })).status).toBe(200)
  })

  it("set the rate limits", async () => {
    const { url } = await startServer({
      SEED_FILE: await seedFile(seed),
      RATE_LIMIT_PER_KEY: "5",
      RATE_LIMIT_PER_IP: "1000",
      RATE_LIMIT_BURST: "1000",
    })
    const path = "/v2/projects/p1/integrations/webhooks"
    const limits = []
    for (let count = 0; count < 6; count++) {
      const { headers, status } = await call(url, "token-1", "GET", path)
      limits.push([status, headers["x-ratelimit-limit"], headers["x-ratelimit-remaining"]])
    }
    expect(limits).toEqual([
      [200, "5", "4"],
      [200, "5", "3"],
      [200, "5", "2"],
      [200, "5", "1"],
      [200, "5", "0"],
      [429, "5", "0"],
    ])
  })

  it("say how bulk extensions work, that webhooks need https, and when a key is suspended", async () => {
    const { url } = await startServer({
      SEED_FILE: await seedFile(seed),
      BULK_MODE: "neverShorten",
      WEBHOOK_REQUIRE_HTTPS: "true",
      RATE_LIMIT_PER_KEY: "3",
      SUSPENSION_REFUSALS: "1",
      SUSPENSION_DURATION: "1 hour",
    })
    const project = "/v2/projects/p1"
    const all = `${project}/memberships/extend`
    await call(url, "token-1", "PATCH", all, { extend })
    const dry = { extend: "2098-01-01T00:00:00.000Z", dry_run: true }
    expect((await call(url, "token-1", "PATCH", all, dry)).body).toMatchObject({
      data: { would_shorten: 0 },
    })
    const webhook = { url: "http://receiver.example/" }
    const path = `${project}/integrations/webhooks`
    expect((await call(url, "token-1", "POST", path, webhook)).status).toBe(422)
    const { headers, status } = await call(url, "token-1", "GET", path)
    expect(status).toBe(429)
    // Without a suspension, it is a minute at most.
    expect(Number(headers["retry-after"])).toBeGreaterThan(60)
  })

  it("name the trusted proxies", async () => {
    const { url } = await startServer({
      RATE_LIMIT_PER_IP: "1",
      TRUSTED_PROXIES: "10.0.0.0/8, 127.0.0.0/8",
    })
    const from = async (address: string) =>
      (await send(url, { path: "/", headers: { "x-forwarded-for": address } })).status
    expect([await from("1.1.1.1"), await from("1.1.1.1"), await from("2.2.2.2")]).toEqual([
      404, 429, 404,
    ])
  })

  it("allow webhooks to private networks, and set the retry schedule", async () => {
    const environment = { SEED_FILE: await seedFile(seed), WEBHOOK_RETRY_SCHEDULE: "0.05,0.1" }
    const closed = await startServer(environment)
    const path = "/v2/projects/p1/integrations/webhooks"
    const receiver = await startReceiver((response) =>
      response.writeHead(response.req.url === "/gone" ? 410 : 500).end(),
    )
    const webhook = { url: receiver.url }
    expect((await call(closed.url, "token-1", "POST", path, webhook)).status).toBe(422)
    const open = await startServer({ ...environment, WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8" })
    expect((await call(open.url, "token-1", "POST", path, webhook)).status).toBe(200)
    const gone = await call(open.url, "token-1", "POST", path, {
      url: new URL("/gone", receiver.url).href,
    })
    await call(open.url, "token-1", "PATCH", "/v2/projects/p1/memberships/extend", { extend })
    await receiver.until(4)
    const [givenUp] = await open.line(/.*A delivery was given up.*/)
    const lost = JSON.parse(givenUp)
    expect(lost).toMatchObject({ level: "warn", project_id: "p1", attempts: 3, status: 500 })
    expect(receiver.received.map(({ headers }) => headers["webhook-id"])).toContain(lost.event_id)
    const [disabled] = await open.line(/.*A webhook was disabled.*/)
    const { id: webhook_id } = Object(gone.body).data
    expect(JSON.parse(disabled)).toMatchObject({ level: "warn", webhook_id, status: 410 })
    receiver.close()
  })

  it("send webhooks through a proxy, and keep its password to themselves", async () => {
    const receiver = await startReceiver()
    const heads: Array<string> = []
    const proxy = createServer((socket) => {
      socket.once("data", (head) => {
        heads.push(head.toString())
        socket.end("HTTP/1.1 403 Forbidden\r\n\r\n")
      })
    })
    const port = await freePort()
    await once(proxy.listen(port, "127.0.0.1"), "listening")
    const server = await startServer({
      SEED_FILE: await seedFile(seed),
      WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
      WEBHOOK_RETRY_SCHEDULE: "0.05",
      WEBHOOK_PROXY: `http://user:hidden@127.0.0.1:${port}`,
    })
    const path = "/v2/projects/p1/integrations/webhooks"
    await call(server.url, "token-1", "POST", path, { url: receiver.url })
    await call(server.url, "token-1", "PATCH", "/v2/projects/p1/memberships/extend", { extend })
    const [givenUp] = await server.line(/.*A delivery was given up.*/)
    expect(JSON.parse(givenUp)).toMatchObject({ attempts: 2, reason: "Proxy:403" })
    expect(heads).toHaveLength(2)
    expect(heads[0]).toMatch(`CONNECT ${new URL(receiver.url).host} HTTP/1.1`)
    expect(receiver.received).toEqual([])
    expect(server.lines.join("\n")).not.toMatch(/hidden|dXNlcjpoaWRkZW4/)
    receiver.close()
    proxy.close()
  })
})

describe("a health check", () => {
  it("is answered 200, outside the API and its limits", async () => {
    const { url } = await startServer({ RATE_LIMIT_PER_IP: "1" })
    for (let count = 0; count < 20; count++) {
      for (const path of ["/healthz", "/readyz", "/readyz?verbose"]) {
        expect((await send(url, { path })).status).toBe(200)
      }
    }
  })
})

describe("the log", () => {
  it("is JSON from its first line on", async () => {
    const server = await startServer({ SEED_FILE: await seedFile(seed), METRICS_PORT: "0" })
    await send(server.url, { path: "/v2/status" })
    await server.line(/"status":401/)
    expect(server.lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: "info", message: expect.stringMatching(/^Metrics are at http/) },
      { level: "info", message: `Tenure listens on ${server.url}` },
      { level: "info", status: 401 },
    ])
  })

  it("has one line of JSON for each request, without tokens", async () => {
    const server = await startServer({ SEED_FILE: await seedFile(seed) })
    const path = "/v2/projects/p1/memberships/1001/extend"
    const good = await call(server.url, "token-1", "PATCH", `${path}?token=in-query`, { extend })
    await call(server.url, "token-wrong", "PATCH", path, { extend: 1 })
    await server.line(/"status":401/)
    const entries = server.lines.slice(1).map((line) => JSON.parse(line))
    expect(entries).toEqual([
      {
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
        level: "info",
        request_id: Object(good.body).request_id,
        method: "PATCH",
        path,
        status: 200,
        duration_ms: expect.any(Number),
        address: "127.0.0.1",
        key_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      },
      expect.objectContaining({ status: 401, address: "127.0.0.1", key_id: null }),
    ])
    for (const secret of ["token-1", "token-wrong", "in-query"]) {
      expect(server.lines.join("\n")).not.toContain(secret)
    }
  })
})

describe("the log, if it is told to", () => {
  const path = "/v2/projects/p1/memberships/1001/extend"
  const request = async (environment: Readonly<Record<string, string>>) => {
    const server = await startServer({ SEED_FILE: await seedFile(seed), ...environment })
    await call(server.url, "token-1", "PATCH", path, { extend })
    await call(server.url, "token-wrong", "PATCH", path, { extend })
    server.kill("SIGINT")
    return (await server.ended).stdout
  }

  it("has only requests with errors, or none", async () => {
    const errors = await request({ LOG_REQUESTS: "errors" })
    expect(errors).toContain('"status":401')
    expect(errors).not.toContain('"status":200')
    expect(await request({ LOG_REQUESTS: "none" })).not.toContain('"status"')
  })

  it("is text", async () => {
    const text = await request({ LOG_FORMAT: "text" })
    expect(text).toMatch(/ 200 PATCH \/v2\/projects/)
    expect(text).not.toContain("{")
  })

  it("has warnings only, and names variables that are misspelled", async () => {
    const program = start("node-server", {
      PORT: "0",
      LOG_LEVEL: "warn",
      WEBHOOK_TIMOUT: "3",
      DATABSE_SCHEMA: "x",
      HOMES: "x",
    })
    await program.line(/WEBHOOK_TIMOUT/)
    await program.line(/curl/)
    program.kill("SIGINT")
    const { stdout } = await program.ended
    const messages = stdout
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line))
    expect(messages).toEqual([
      expect.objectContaining({
        level: "warn",
        message: "There is no variable WEBHOOK_TIMOUT. Did you mean WEBHOOK_TIMEOUT?",
      }),
      expect.objectContaining({
        message: "There is no variable DATABSE_SCHEMA. Did you mean DATABASE_SCHEMA?",
      }),
    ])
  })
})

describe("with arguments, a server does not start", () => {
  it.each([
    { args: ["--help"], code: 0, stdout: /Usage: .*\bPORT\b.*\bDATABASE_URL\b/s, stderr: /^$/ },
    { args: ["--version"], code: 0, stdout: /^tenure \d+\.\d+\.\d+/, stderr: /^$/ },
    { args: ["--port", "4000"], code: 2, stdout: /^$/, stderr: /no argument "--port".*\bPORT\b/s },
    { args: ["extra", "--version"], code: 2, stdout: /^$/, stderr: /no argument "extra"/ },
  ])("$args", async ({ args, code, stderr, stdout }) => {
    expect(await start("node-server", {}, args).ended).toEqual({
      code,
      stdout: expect.stringMatching(stdout),
      stderr: expect.stringMatching(stderr),
    })
  })
})

describe("on SIGTERM, SIGHUP and SIGINT", () => {
  it("the server says at first that it is not ready, answers, and closes connections", async () => {
    const server = await startServer({ DRAIN_DELAY: "60" })
    const headers = { connection: "keep-alive" }
    const answer = async (path: string) => {
      const { headers: received, status } = await send(server.url, { path, headers })
      return [status, received["connection"]]
    }
    expect(await answer("/readyz")).toEqual([200, "keep-alive"])
    server.kill("SIGTERM")
    await expect.poll(() => answer("/readyz")).toEqual([503, "close"])
    expect(await answer("/healthz")).toEqual([200, "close"])
    expect(await answer("/v2/projects/demo/integrations/webhooks")).toEqual([401, "close"])
  })

  it.each(["SIGTERM", "SIGHUP", "SIGINT"] as const)(
    "%s stops the server with exit code 0",
    async (signal) => {
      const server = await startServer({ DRAIN_DELAY: signal === "SIGINT" ? "60" : "0.1" })
      const before = Date.now()
      server.kill(signal)
      expect(await server.ended).toMatchObject({ code: 0, stderr: "" })
      expect(Date.now() - before).toBeLessThan(8000)
    },
  )

  it("the server does not wait for requests after a second Ctrl+C, and for them after one that npm repeats", async () => {
    const server = await startServer({ SEED_FILE: await seedFile(seed), SHUTDOWN_TIMEOUT: "600" })
    // A request whose body does not come.
    const slowClient = connect(Number(new URL(server.url).port), "127.0.0.1")
    slowClient.on("error", () => {})
    const head = [
      "PATCH /v2/projects/p1/memberships/1001/extend HTTP/1.1",
      "Host: 127.0.0.1",
      "Authorization: Bearer token-1",
      "Content-Type: application/json",
      "Content-Length: 40",
    ]
    slowClient.write(`${head.join("\r\n")}\r\n\r\n{`)
    await call(server.url, "token-1", "GET", "/v2/projects/p1/memberships/1001")
    server.kill("SIGINT")
    server.kill("SIGINT")
    const first = await Promise.race([server.ended, setTimeout(1000, "waits")])
    expect(first).toBe("waits")
    server.kill("SIGINT")
    expect(await server.ended).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("interrupted twice"),
    })
    slowClient.destroy()
  })

  it("the server stops in time even if a client is slow and a receiver hangs", async () => {
    const server = await startServer({
      SEED_FILE: await seedFile(seed),
      WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
      DRAIN_DELAY: "0",
    })
    const receiver = await startReceiver(() => {})
    const webhooks = "/v2/projects/p1/integrations/webhooks"
    await call(server.url, "token-1", "POST", webhooks, { url: receiver.url })
    await call(server.url, "token-1", "PATCH", "/v2/projects/p1/memberships/extend", { extend })
    await receiver.until(1)
    // A client that starts a request and does not continue.
    const slowClient = connect(Number(new URL(server.url).port), "127.0.0.1")
    slowClient.on("error", () => {})
    await new Promise<void>((resolve) => slowClient.write("GET / HTT", () => resolve()))
    const before = Date.now()
    server.kill("SIGTERM")
    expect((await server.ended).code).toBe(0)
    expect(Date.now() - before).toBeLessThan(8000)
    slowClient.destroy()
    receiver.close()
  })
})

describe("the receiver", () => {
  it("prints what the server sends, soon after the change", async () => {
    const server = await startServer({
      SEED_FILE: await seedFile(seed),
      WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
    })
    const port = await freePort()
    const created = await call(
      server.url,
      "token-1",
      "POST",
      "/v2/projects/p1/integrations/webhooks",
      { url: `http://localhost:${port}/hook` },
    )
    const receiver = start("webhook-receiver", {
      PORT: String(port),
      WEBHOOK_SECRET: Object(created.body).data.secret,
    })
    await receiver.line(/listens on/)
    const before = Date.now()
    const path = "/v2/projects/p1/memberships/1001/extend"
    await call(server.url, "token-1", "PATCH", path, { extend })
    const [event] = await receiver.line(/^\{.*\}$/)
    expect(Date.now() - before).toBeLessThan(4000)
    expect(JSON.parse(event)).toMatchObject({ type: "membership.extended" })
    const forged = await send(`http://127.0.0.1:${port}`, { method: "POST", path: "/", body: "{}" })
    expect(forged.status).toBe(400)
    await receiver.line(/^refused: the webhook-id header is missing$/)
  })
})
