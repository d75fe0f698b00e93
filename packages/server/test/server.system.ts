/** The server as a process: settings, log, signals, webhooks. */

import { execFile } from "node:child_process"
import { once } from "node:events"
import { connect, createServer } from "node:net"
import { setTimeout } from "node:timers/promises"
import { promisify } from "node:util"
import { type Receiver, freePort, send, startReceiver } from "@tenure/testing/conformance"
import { afterEach, describe, expect, it, onTestFinished } from "vitest"
import { type Server, endAll, start, startServer } from "./programs.ts"
import { type Environment, call, extend, project, temporaryFolder, writeJson } from "./world.ts"

afterEach(endAll)

const folder = temporaryFolder()
const allMembers = `${project}/memberships/extend`
const member = `${project}/memberships/1001`
const webhooks = `${project}/integrations/webhooks`

const seed = {
  projects: [
    {
      id: "p1",
      memberships: [
        {
          user_id: "1001",
          end_date: "2027-01-01T00:00:00.000Z",
          metadata: { plan: "gold" },
        },
      ],
      api_keys: ["a-token", "both", { token: "an operator", role: "operator", name: "Ada" }],
    },
    { id: "p2", api_keys: ["both"] },
    { id: "p3" },
  ],
  api_keys: [{ token: "an admin", role: "admin" }],
}

const SEED_FILE = await writeJson(folder, seed)

const startSeeded = (environment: Environment = {}) => startServer({ SEED_FILE, ...environment })

/** Runs a printed command, and returns the response. */
const runCurl = async (command: string): Promise<unknown> => {
  const { stdout } = await promisify(execFile)("sh", ["-c", command.replace("curl ", "curl -s ")])
  return JSON.parse(stdout)
}

/** Starts a receiver and a server with a webhook to it, and changes a membership. */
const startSending = async (
  environment: Environment,
  answer?: Parameters<typeof startReceiver>[0],
) => {
  const receiver: Receiver = await startReceiver(answer)
  onTestFinished(receiver.close)
  const server = await startSeeded({ WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8", ...environment })
  expect(await call(server, "POST", webhooks, { url: receiver.url })).toMatchObject({ status: 200 })
  await call(server, "PATCH", allMembers, { extend })
  return { receiver, server }
}

/** Connects a client that begins a request, and then sends nothing. */
const startSlowClient = async ({ url }: Server, ...lines: ReadonlyArray<string>) => {
  const client = connect(Number(new URL(url).port), "127.0.0.1")
  onTestFinished(() => void client.destroy())
  client.on("error", () => {})
  await new Promise<void>((resolve) => client.write(lines.join("\r\n"), () => resolve()))
}

it("a server follows the feed by WebSocket", async () => {
  const server = await startSeeded()
  const issued = await call(server, "POST", "/v2/realtime/tickets", { projects: ["p1"] })
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
    const results = []
    for (const curl of curls) results.push(await runCurl(curl))
    expect(results).toMatchObject([
      { code: 200, method: "PATCH", total: 1 },
      { code: 200, method: "PATCH", total: 3 },
      { code: 200, method: "POST", data: { secret: expect.stringMatching(/^whsec_/) } },
      { code: 200, method: "GET", total: 1 },
      { code: 200, method: "DELETE", data: null },
      { code: 200, method: "GET", data: [{ role: "client" }, { role: "admin", projects: "all" }] },
    ])
  })

  it("leads browsers to the console, and nobody else, and creates new API keys each time", async () => {
    const tokens: Array<string> = []
    for (const environment of [{}, { BASE_PATH: "/api" }]) {
      const { line, url } = await startServer(environment)
      const root = new URL("/", url)
      const get = (accept: string) => fetch(root, { headers: { accept }, redirect: "manual" })
      const { headers, status } = await get("text/html,application/xhtml+xml;q=0.9")
      expect(status).toBe(302)
      const console = new URL(headers.get("location") ?? "", root)
      expect(console.href).toBe(`${url}/console/`)
      expect(await (await fetch(console)).text()).toContain("<html")
      expect((await get("*/*")).status).toBe(404)
      tokens.push(...(await line(/tnr_[A-Za-z0-9_-]+/)))
    }
    expect(new Set(tokens).size).toBe(2)
  })
})

it("a seed file creates projects, memberships and API keys, also if it repeats them", async () => {
  const projects = [...seed.projects, ...seed.projects]
  const server = await startSeeded({ SEED_FILE: await writeJson(folder, { ...seed, projects }) })
  expect(await call(server, "PATCH", allMembers, { extend })).toMatchObject({
    status: 200,
    body: { total: 1 },
  })
  for (const [token, id, status] of [
    ["a-token", "p1", 200],
    ["a-token", "p2", 404],
    ["both", "p1", 200],
    ["both", "p2", 200],
    ["both", "p3", 404],
    ["unknown", "p1", 401],
  ] as const) {
    const path = `/v2/projects/${id}/integrations/webhooks`
    expect(await call(server, "GET", path, undefined, token)).toMatchObject({ status })
  }
  const { body } = await call(server, "GET", "/v2/api-keys", undefined, "an admin")
  expect(Object(body).data).toMatchObject([
    { role: "client", projects: ["p1"] },
    { role: "client", projects: ["p1", "p2"] },
    { role: "operator", projects: ["p1"], name: "Ada" },
    { role: "admin", projects: "all" },
  ])
  const asOperator = (path: string) => call(server, "GET", path, undefined, "an operator")
  expect(await asOperator("/v2/api-keys")).toMatchObject({ status: 403 })
  expect((await asOperator(member)).body).toMatchObject({ data: { metadata: { plan: "gold" } } })
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
    const port = await freePort()
    const other = createServer()
    await once(other.listen(port, "127.0.0.1"), "listening")
    const { code, stderr } = await start("node-server", { PORT: String(port) }).ended
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
    expect(await runCurl(curl)).toMatchObject({ code: 200 })
    expect((await send(url, { path: `/api${webhooks}` })).status).toBe(401)
    expect((await send(url, { path: "/healthz" })).status).toBe(200)
  })

  it("set the rate limits", async () => {
    const server = await startSeeded({
      RATE_LIMIT_PER_KEY: "2",
      RATE_LIMIT_PER_IP: "1000",
      RATE_LIMIT_BURST: "1000",
    })
    for (const [status, remaining] of [
      [200, "1"],
      [200, "0"],
      [429, "0"],
    ]) {
      const headers = { "x-ratelimit-limit": "2", "x-ratelimit-remaining": remaining }
      expect(await call(server, "GET", webhooks)).toMatchObject({ status, headers })
    }
  })

  it("name the trusted proxies", async () => {
    const { url } = await startServer({
      RATE_LIMIT_PER_IP: "1",
      TRUSTED_PROXIES: "10.0.0.0/8, 127.0.0.0/8",
    })
    for (const [address, status] of [
      ["1.1.1.1", 404],
      ["1.1.1.1", 429],
      ["2.2.2.2", 404],
    ] as const) {
      const headers = { "x-forwarded-for": address }
      expect(await send(url, { path: "/", headers })).toMatchObject({ status })
    }
  })

  it("say how bulk extensions work, that webhooks need https, and when a key is suspended", async () => {
    const server = await startSeeded({
      BULK_MODE: "neverShorten",
      WEBHOOK_REQUIRE_HTTPS: "true",
      RATE_LIMIT_PER_KEY: "3",
      SUSPENSION_REFUSALS: "1",
      SUSPENSION_DURATION: "1 hour",
    })
    await call(server, "PATCH", allMembers, { extend })
    const dry = { extend: "2098-01-01T00:00:00.000Z", dry_run: true }
    const { body } = await call(server, "PATCH", allMembers, dry)
    expect(body).toMatchObject({ data: { would_shorten: 0 } })
    const webhook = { url: "http://receiver.example/" }
    expect(await call(server, "POST", webhooks, webhook)).toMatchObject({ status: 422 })
    const { headers, status } = await call(server, "GET", webhooks)
    expect(status).toBe(429)
    // Without a suspension, at most a minute.
    expect(Number(headers["retry-after"])).toBeGreaterThan(60)
  })

  it("allow webhooks to private networks, and set the retry schedule", async () => {
    const closed = await startSeeded()
    const url = "http://127.0.0.1:1/hook"
    expect(await call(closed, "POST", webhooks, { url })).toMatchObject({ status: 422 })
    const { receiver, server } = await startSending(
      { WEBHOOK_RETRY_SCHEDULE: "0.05,0.1" },
      (response) => response.writeHead(response.req.url === "/gone" ? 410 : 500).end(),
    )
    const gone = await call(server, "POST", webhooks, { url: new URL("/gone", receiver.url).href })
    await call(server, "PATCH", allMembers, { extend: "2099-02-01T00:00:00.000Z" })
    const [givenUp] = await server.line(/.*A delivery was given up.*/)
    const lost = JSON.parse(givenUp)
    expect(lost).toMatchObject({ level: "warn", project_id: "p1", attempts: 3, status: 500 })
    expect(receiver.received.map(({ headers }) => headers["webhook-id"])).toContain(lost.event_id)
    const [disabled] = await server.line(/.*A webhook was disabled.*/)
    const { id: webhook_id } = Object(gone.body).data
    expect(JSON.parse(disabled)).toMatchObject({ level: "warn", webhook_id, status: 410 })
  })

  it("send webhooks through a proxy, and keep its password to themselves", async () => {
    const heads: Array<string> = []
    const proxy = createServer((socket) => {
      socket.once("data", (head) => {
        heads.push(head.toString())
        socket.end("HTTP/1.1 403 Forbidden\r\n\r\n")
      })
    })
    const port = await freePort()
    await once(proxy.listen(port, "127.0.0.1"), "listening")
    onTestFinished(() => void proxy.close())
    const { receiver, server } = await startSending({
      WEBHOOK_RETRY_SCHEDULE: "0.05",
      WEBHOOK_PROXY: `http://user:hidden@127.0.0.1:${port}`,
    })
    const [givenUp] = await server.line(/.*A delivery was given up.*/)
    expect(JSON.parse(givenUp)).toMatchObject({ attempts: 2, reason: "Proxy:403" })
    expect(heads).toHaveLength(2)
    expect(heads[0]).toMatch(`CONNECT ${new URL(receiver.url).host} HTTP/1.1`)
    expect(receiver.received).toEqual([])
    expect(server.lines.join("\n")).not.toMatch(/hidden|dXNlcjpoaWRkZW4/)
  })
})

it("a health check is answered 200, outside the API and its limits", async () => {
  const { url } = await startServer({ RATE_LIMIT_PER_IP: "1" })
  for (let count = 0; count < 20; count++) {
    for (const path of ["/healthz", "/readyz", "/readyz?verbose"]) {
      expect((await send(url, { path })).status).toBe(200)
    }
  }
})

describe("the log", () => {
  const change = async (environment: Environment) => {
    const server = await startSeeded(environment)
    const good = await call(server, "PATCH", `${member}/extend?token=in-query`, { extend })
    await call(server, "PATCH", `${member}/extend`, { extend }, "token-wrong")
    server.kill("SIGINT")
    const { stdout } = await server.ended
    return { requestId: Object(good.body).request_id, stdout, url: server.url }
  }

  it("is JSON from its first line on, one line for each request, without tokens", async () => {
    const { requestId, stdout, url } = await change({ METRICS_PORT: "0" })
    const entries = stdout.split("\n").map((line) => JSON.parse(line))
    expect(entries.slice(0, 2)).toMatchObject([
      { level: "info", message: expect.stringMatching(/^Metrics are at http/) },
      { level: "info", message: `Tenure listens on ${url}` },
    ])
    expect(entries.slice(2)).toEqual([
      {
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
        level: "info",
        request_id: requestId,
        method: "PATCH",
        path: `${member}/extend`,
        status: 200,
        duration_ms: expect.any(Number),
        address: "127.0.0.1",
        key_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      },
      expect.objectContaining({ level: "info", status: 401, address: "127.0.0.1", key_id: null }),
    ])
    expect(stdout).not.toMatch(/a-token|token-wrong|in-query/)
  })

  it("has only requests with errors, or none, if it is told to", async () => {
    const errors = (await change({ LOG_REQUESTS: "errors" })).stdout
    expect(errors).toContain('"status":401')
    expect(errors).not.toContain('"status":200')
    expect((await change({ LOG_REQUESTS: "none" })).stdout).not.toContain('"status"')
  })

  it("is text, if it is told to", async () => {
    const { stdout } = await change({ LOG_FORMAT: "text" })
    expect(stdout).toMatch(/ 200 PATCH \/v2\/projects/)
    expect(stdout).not.toContain("{")
  })

  it("has warnings only, if it is told to, and names variables that are misspelled", async () => {
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
    const messages = stdout.split("\n").filter((line) => line.startsWith("{"))
    expect(messages.map((line) => JSON.parse(line))).toMatchObject([
      {
        level: "warn",
        message: "There is no variable WEBHOOK_TIMOUT. Did you mean WEBHOOK_TIMEOUT?",
      },
      { message: "There is no variable DATABSE_SCHEMA. Did you mean DATABASE_SCHEMA?" },
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

  it.each([
    ["SIGTERM", "0.1"],
    ["SIGHUP", "0.1"],
    ["SIGINT", "60"],
  ] as const)("%s stops the server with exit code 0", async (signal, DRAIN_DELAY) => {
    const server = await startServer({ DRAIN_DELAY })
    const before = Date.now()
    server.kill(signal)
    expect(await server.ended).toMatchObject({ code: 0, stderr: "" })
    expect(Date.now() - before).toBeLessThan(8000)
  })

  it("the server does not wait for requests after a second Ctrl+C, and for them after one that npm repeats", async () => {
    const server = await startSeeded({ SHUTDOWN_TIMEOUT: "600" })
    // The body of this request never arrives.
    await startSlowClient(
      server,
      `PATCH ${member}/extend HTTP/1.1`,
      "Host: 127.0.0.1",
      "Authorization: Bearer a-token",
      "Content-Type: application/json",
      "Content-Length: 40",
      "",
      "{",
    )
    await call(server, "GET", member)
    server.kill("SIGINT")
    server.kill("SIGINT")
    expect(await Promise.race([server.ended, setTimeout(1000, "waits")])).toBe("waits")
    server.kill("SIGINT")
    expect(await server.ended).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("interrupted twice"),
    })
  })

  it("the server stops in time even if a client is slow and a receiver hangs", async () => {
    const { receiver, server } = await startSending({ DRAIN_DELAY: "0" }, () => {})
    await receiver.until(1)
    await startSlowClient(server, "GET / HTT")
    const before = Date.now()
    server.kill("SIGTERM")
    expect((await server.ended).code).toBe(0)
    expect(Date.now() - before).toBeLessThan(8000)
  })
})

it("the receiver prints what the server sends, soon after the change", async () => {
  const server = await startSeeded({ WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8" })
  const port = await freePort()
  const url = `http://localhost:${port}/hook`
  const created = await call(server, "POST", webhooks, { url })
  const receiver = start("webhook-receiver", {
    PORT: String(port),
    WEBHOOK_SECRET: Object(created.body).data.secret,
  })
  await receiver.line(/listens on/)
  const before = Date.now()
  await call(server, "PATCH", `${member}/extend`, { extend })
  const [event] = await receiver.line(/^\{.*\}$/)
  expect(Date.now() - before).toBeLessThan(4000)
  expect(JSON.parse(event)).toMatchObject({ type: "membership.extended" })
  const forged = await send(`http://127.0.0.1:${port}`, { method: "POST", path: "/", body: "{}" })
  expect(forged.status).toBe(400)
  await receiver.line(/^refused: the webhook-id header is missing$/)
})
