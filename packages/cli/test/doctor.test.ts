/** What `doctor` finds at a server, at what is none, and in a status. */

import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import { type Server, createServer as createTcpServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freePort, startReceiver } from "@tenure/testing/conformance"
import { expect, it, onTestFinished } from "vitest"
import { judgeClock, judgeMigrations, judgeStatus } from "../src/commands/doctor.ts"
import { doctorOf } from "./doctor.ts"
import { tenureWith } from "./in-process.ts"
import { startServer, token } from "./server.ts"

const doctorAt = (url: string) => doctorOf({ TENURE_URL: url, TENURE_TOKEN: token })

const listening = async (server: Server): Promise<string> => {
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => void server.close())
  const address = server.address()
  return `http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`
}

it("the doctor says that nothing listens", async () => {
  const said = await doctorAt(`http://127.0.0.1:${await freePort()}`)
  expect(said).toContain("nobody answers (connect ECONNREFUSED 127.0.0.1:")
  expect(said).toContain("start the server, or correct the host and port")
  const unknown = await doctorAt("http://tenure.invalid")
  expect(unknown).toMatch(/nobody answers \(getaddrinfo E\w+ tenure\.invalid\)/)
  expect(unknown).toContain("Correct the host")
})

it("the doctor says that something closes the connection, or is not Tenure, or is a proxy", async () => {
  const closing = await listening(createTcpServer((socket) => socket.destroy()))
  expect(await doctorAt(closing)).toContain("closes the connection")
  const other = await listening(createServer((_, response) => response.end("<h1>Welcome")))
  expect(await doctorAt(other)).toContain("what answers there is not Tenure")
  const proxy = await listening(createServer((_, response) => response.writeHead(502).end()))
  const said = await doctorAt(proxy)
  expect(said).toContain("something else answers 502, for example a proxy")
  expect(said).toContain("whether the server behind it runs")
})

it("the doctor names what is wrong at a server, and what to do", async () => {
  const server = await startServer()
  onTestFinished(server.stop)
  const folder = mkdtempSync(join(tmpdir(), "tenure-doctor-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const environment = { TENURE_URL: server.url, XDG_CONFIG_HOME: folder }
  const admin = tenureWith({ ...environment, TENURE_TOKEN: token })
  expect(await admin("doctor")).toMatchObject({ code: 0, stdout: expect.stringContaining("clock") })
  await admin("projects", "create", "p")
  const failing = await startReceiver((response) => response.writeHead(500).end())
  onTestFinished(failing.close)
  const made = await admin("webhooks", "create", failing.url, "-p", "p", "--json")
  const other = JSON.parse(made.stdout).id
  await admin("webhooks", "ping", other, "-p", "p")
  await expect.poll(async () => (await admin("doctor")).stdout).toContain(`fail for: ${other} of p`)
  expect(await admin("doctor")).toMatchObject({ code: 0 })
  const { close, url } = await startReceiver((response) => response.writeHead(410).end())
  onTestFinished(close)
  const { id } = JSON.parse((await admin("webhooks", "create", url, "-p", "p", "--json")).stdout)
  await admin("webhooks", "ping", id, "-p", "p")
  await expect.poll(async () => (await admin("doctor")).stdout).toContain(`1 disabled: ${id} of p`)
  expect((await admin("webhooks", "list", "-p", "p")).stdout).toMatch(
    /disabled +HTTP 410 · \d+ s ago +http\S+ +\d{4}-\S+ +1$/m,
  )
  expect(await admin("doctor")).toMatchObject({ code: 1 })
  const issued = JSON.parse((await admin("keys", "issue", "-p", "p", "--json")).stdout)
  const client = await tenureWith({ ...environment, TENURE_TOKEN: issued.token })("doctor")
  expect(client).toMatchObject({ code: 1, stdout: expect.stringContaining("admin") })
  await server.stop()
  const away = await admin("doctor", "--json")
  expect(away).toMatchObject({ code: 1, stdout: expect.stringContaining("nobody answers") })
})

it("the doctor knows what is too much", () => {
  const attention = {
    project_id: "p",
    url_host: "receiver.example",
    description: null,
    since: "2027-01-01T00:00:00.000Z",
    last_attempt: null,
    waiting: 1,
  } as const
  const status = {
    versions: { tenure: "1.0.0", api: "v2" },
    stores: {
      memberships: false,
      webhooks: true,
      api_keys: true,
      deliveries: true,
      rate_limits: true,
    },
    backlog: { waiting: 10, due_for_ms: 120_000, late_for_ms: 90_000 },
    failed_deliveries: 3,
    disabled_webhooks: 2,
    webhooks_needing_attention: [
      { id: "w2", reason: "failing", ...attention },
      { id: "w1", reason: "disabled", ...attention },
    ],
    rate_limiting: "local",
    suspended_keys: ["k"],
    missing_encryption_keys: ["k1"],
  } as const
  const findings = judgeStatus(status, "Server")
  expect(findings.map(({ check, state }) => [check, state])).toEqual([
    ["stores", "problem"],
    ["deliveries", "problem"],
    ["given up", "warning"],
    ["webhooks", "problem"],
    ["attempts", "warning"],
    ["limiting", "problem"],
    ["limits", "warning"],
    ["encryption", "problem"],
  ])
  expect(findings[1]).toMatchObject({
    found: "10 waiting, one for 90 s for a server to send it",
    advice: expect.stringContaining("add processes"),
  })
  const backlog = { ...status.backlog, late_for_ms: null }
  expect(judgeStatus({ ...status, backlog }, "Server")[1]).toMatchObject({
    state: "warning",
    found: "10 waiting, the oldest due for 120 s, because of its receiver",
    advice: expect.stringContaining("More processes would not help"),
  })
  const stores = { ...status.stores, memberships: true, rate_limits: false }
  expect(judgeStatus({ ...status, stores }, "Server")[0]?.advice).toContain("REDIS_URL")
  // The servers may have the key that the command has not.
  expect(judgeStatus(status, "Database").at(-1)?.state).toBe("warning")
  expect(findings.every(({ advice }) => advice !== null)).toBe(true)
  expect(findings[3]?.found).toBe("2 disabled: w1 of p")
  expect(judgeClock(400).advice).toBeNull()
  expect(judgeClock(-60_000).advice).toContain("NTP")
  expect(judgeMigrations([]).advice).toBeNull()
  expect(judgeMigrations([2]).advice).toBe("Run tenure migrate.")
})
