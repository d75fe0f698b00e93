/** What `doctor` and commands say about connections that fail, and what `doctor` finds in a status. */

import { createServer } from "node:http"
import { createServer as createTlsServer } from "node:https"
import { type Server, createServer as createTcpServer } from "node:net"
import { freePort, startReceiver } from "@tenure/testing/conformance"
import { expect, it, onTestFinished } from "vitest"
import { makeAuthority } from "../../postgres/test/certificates.ts"
import { judgeClock, judgeMigrations, judgeStatus } from "../src/commands/doctor.ts"
import { refused, temporaryFolder, tenureWith } from "./in-process.ts"
import { startServer, token } from "./server.ts"

const at = (url: string) => tenureWith({ TENURE_URL: url, TENURE_TOKEN: token })

/** Listens until the test ends, and returns the host and the port. */
const listening = async (server: Server): Promise<string> => {
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => void server.close())
  const address = server.address()
  return `127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`
}

it.each<readonly [string, () => Promise<string>, ReadonlyArray<RegExp | string>]>([
  [
    "nothing listens",
    async () => `127.0.0.1:${await freePort()}`,
    [
      "nobody answers (connect ECONNREFUSED 127.0.0.1:",
      "start the server, or correct the host and port",
    ],
  ],
  [
    "nobody knows the host",
    async () => "tenure.invalid",
    [/nobody answers \(getaddrinfo E\w+ tenure\.invalid\)/, "Correct the host"],
  ],
  [
    "something closes the connection",
    () => listening(createTcpServer((socket) => socket.destroy())),
    ["closes the connection"],
  ],
  [
    "something else answers",
    () => listening(createServer((_, response) => response.end("<h1>Welcome"))),
    ["what answers there is not Tenure"],
  ],
  [
    "a proxy answers",
    () => listening(createServer((_, response) => response.writeHead(502).end())),
    ["something else answers 502, for example a proxy", "whether the server behind it runs"],
  ],
])("the doctor says that %s", async (_, start, texts) => {
  const { run } = at(`http://${await start()}`)
  for (const { code, stderr, stdout } of [await run`doctor`, await run`doctor --json`]) {
    expect(code).toBe(1)
    for (const text of texts) expect(stdout + stderr).toMatch(text)
  }
})

it("why a connection fails is said in words, with what helps", async () => {
  const { certificate, key } = makeAuthority().issue(["127.0.0.1"])
  const withoutTls = await listening(createServer())
  const unknown = await listening(createTlsServer({ cert: certificate, key }))
  for (const [url, text] of [
    [`https://${withoutTls}`, "(wrong version number). The server speaks http there, not https"],
    [`https://${unknown}`, "NODE_EXTRA_CA_CERTS"],
    ["http://127.0.0.1:19", "Check the URL, and that the server runs."],
  ] as const)
    expect(await at(url).run`status`).toMatchObject(refused(4, text))
})

it("the doctor names what is wrong at a server, and what to do", async () => {
  const server = await startServer()
  onTestFinished(server.stop)
  const environment = { TENURE_URL: server.url, XDG_CONFIG_HOME: temporaryFolder() }
  const { json, print, run } = tenureWith({ ...environment, TENURE_TOKEN: token })
  const createFor = async (status: number) => {
    const { close, url } = await startReceiver((response) => response.writeHead(status).end())
    onTestFinished(close)
    const { id } = await json`webhooks create ${url} -p p`
    await print`webhooks ping ${id} -p p`
    return String(id)
  }
  const found = async () => (await run`doctor`).stdout
  expect(await print`doctor`).toContain("clock")
  await print`projects create p`
  const failing = await createFor(500)
  await expect.poll(found).toContain(`fail for: ${failing} of p`)
  await print`doctor`
  const gone = await createFor(410)
  await expect.poll(found).toContain(`1 disabled: ${gone} of p`)
  expect(await print`webhooks list -p p`).toMatch(
    /disabled +HTTP 410 · \d+ s ago +http\S+ +\d{4}-\S+ +1$/m,
  )
  expect(await run`doctor`).toMatchObject({ code: 1 })
  const key = await json`keys issue -p p`
  const client = tenureWith({ ...environment, TENURE_TOKEN: key.token })
  const needed = { code: 1, stdout: expect.stringContaining("admin") }
  expect(await client.run`doctor`).toMatchObject(needed)
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
