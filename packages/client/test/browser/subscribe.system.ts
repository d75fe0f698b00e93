/** A browser page follows the feed with tickets, even through a server crash, on PostgreSQL. */

import { randomUUID } from "node:crypto"
import { once } from "node:events"
import { readFile } from "node:fs/promises"
import { createServer } from "node:http"
import type { Socket } from "node:net"
import { fileURLToPath } from "node:url"
import { type Tenure, createTenure } from "@tenure/core"
import { attachRealtime, toNodeHandler } from "@tenure/node-http"
import { postgres } from "@tenure/postgres"
import { freePort } from "@tenure/testing/conformance"
import { build } from "esbuild"
import { beforeAll, expect, inject, it } from "vitest"
import { useBrowser } from "../../../console/test/browser/chromium.ts"
import { createClient } from "../../src/create-client.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly databaseUrl: string
  }
}

const pathOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

const bundle = async (): Promise<string> => {
  const { outputFiles } = await build({
    entryPoints: [pathOf("../../src/index.ts")],
    bundle: true,
    write: false,
    format: "esm",
    platform: "browser",
    conditions: ["@tenure/source"],
  })
  return outputFiles.map(({ text }) => text).join("")
}

const browser = useBrowser()

let files: Readonly<Record<string, readonly [type: string, text: string]>>

beforeAll(async () => {
  files = {
    page: ["text/html", await readFile(pathOf("page.html"), "utf8")],
    "client.js": ["text/javascript", await bundle()],
  }
})

const projectId = "p1"

/** Starts the page's backend with the token, and the API with cross-origin access. */
const start = async (schema: string, port: number) => {
  const tenure = await createTenure({
    stores: postgres({ url: inject("databaseUrl"), schema }),
    rateLimits: { burst: { limit: 1000, window: "1 second" } },
  })
  const { token } = await tenure.apiKeys.issue({ projects: "all", role: "admin" })
  const backend = createClient({ baseUrl: `http://127.0.0.1:${port}`, token })
  const handler = toNodeHandler(tenure)
  const server = createServer((request, response) => {
    const [name = ""] = /[^/?]*(?=\?|$)/.exec(request.url ?? "") ?? []
    const [type, text] = files[name] ?? []
    if (type !== undefined) return void response.setHeader("content-type", type).end(text)
    if (name === "ticket") {
      const issued = backend.realtime.issueTicket({ projects: [projectId] })
      return void issued.then(({ data }) => response.end(data.ticket))
    }
    response.setHeader("access-control-allow-origin", `http://localhost:${port}`)
    handler(request, response)
  })
  attachRealtime(server, tenure)
  const sockets = new Set<Socket>()
  server.on("connection", (socket) => void sockets.add(socket))
  server.listen(port, "127.0.0.1")
  await once(server, "listening")
  const kill = async () => {
    const closed = once(server, "close")
    server.close()
    for (const socket of sockets) socket.destroy()
    await closed
  }
  return { tenure, kill }
}

const publish = async ({ events }: Tenure, numbers: ReadonlyArray<number>) => {
  for (const n of numbers) await events.publish({ projectId, type: "counted", data: { n } })
}

it.each([
  ["the client", "127.0.0.1"],
  ["the client", "localhost"],
  ["EventSource", "127.0.0.1"],
  ["WebSocket", "127.0.0.1"],
  ["WebSocket", "localhost"],
])("follows the feed by %s, and misses nothing when the server dies (on %s)", async (by, host) => {
  const port = await freePort()
  const schema = `browser_${randomUUID().replaceAll("-", "")}`
  const first = await start(schema, port)
  await first.tenure.memberships.createProject(projectId)
  const page = await browser().newPage()
  const query = new URLSearchParams({ by, api: `http://127.0.0.1:${port}` })
  const numbers = () => page.evaluate("window.numbers")
  await publish(first.tenure, [0, 1, 2])
  await page.goto(`http://${host}:${port}/page?${query}`)
  await expect.poll(numbers).toEqual([0, 1, 2])
  await publish(first.tenure, [3])
  await expect.poll(numbers).toEqual([0, 1, 2, 3])
  await first.kill()
  await publish(first.tenure, [4, 5])
  await expect.poll(() => page.evaluate("window.retries")).toBeGreaterThan(0)
  await first.tenure.close()
  const second = await start(schema, port)
  await publish(second.tenure, [6])
  await expect.poll(numbers).toEqual([0, 1, 2, 3, 4, 5, 6])
  await page.close()
  await second.kill()
  await second.tenure.close()
})
