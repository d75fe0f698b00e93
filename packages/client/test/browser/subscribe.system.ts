/** A page in a browser follows the feed with tickets, also when the server dies, on PostgreSQL. */

import { randomUUID } from "node:crypto"
import { once } from "node:events"
import { readFile } from "node:fs/promises"
import { type Server, createServer } from "node:http"
import type { Socket } from "node:net"
import { fileURLToPath } from "node:url"
import { type Tenure, createTenure } from "@tenure/core"
import { attachRealtime, toNodeHandler } from "@tenure/node-http"
import { postgres } from "@tenure/postgres"
import { freePort } from "@tenure/testing/conformance"
import { build } from "esbuild"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest"
import { launch, path, reason } from "../../../console/test/browser/chromium.ts"
import { createClient } from "../../src/create-client.ts"

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

describe.skipIf(path === undefined)(
  `a page in Chromium${reason === undefined ? "" : ` (${reason})`}`,
  () => {
    let browser: Browser
    let port: number
    let token: string
    let tenure: Tenure
    let server: Server
    const sockets = new Set<Socket>()
    let files: Readonly<Record<string, readonly [type: string, text: string]>>
    const schema = `browser_${randomUUID().replaceAll("-", "")}`

    const openStores = async () => {
      tenure = await createTenure({
        stores: postgres({ url: inject("databaseUrl"), schema }),
        rateLimits: { burst: { limit: 1000, window: "1 second" } },
      })
    }

    /** The backend of the page, which has the token, and the API, for pages of other origins, too. */
    const start = async () => {
      const handler = toNodeHandler(tenure)
      const backend = createClient({ baseUrl: `http://127.0.0.1:${port}`, token })
      server = createServer((request, response) => {
        const [name = ""] = /[^/?]*(?=\?|$)/.exec(request.url ?? "") ?? []
        const [type, text] = files[name] ?? []
        if (type !== undefined) return void response.setHeader("content-type", type).end(text)
        if (name === "ticket") {
          const issued = backend.realtime.issueTicket({ projects: ["p1"] })
          return void issued.then(({ data }) => response.end(data.ticket))
        }
        response.setHeader("access-control-allow-origin", `http://localhost:${port}`)
        handler(request, response)
      })
      attachRealtime(server, tenure)
      server.on("connection", (socket) => {
        sockets.add(socket)
        socket.on("close", () => sockets.delete(socket))
      })
      server.listen(port, "127.0.0.1")
      await once(server, "listening")
    }

    const kill = async () => {
      const closed = once(server, "close")
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    }

    const publish = async (numbers: ReadonlyArray<number>) => {
      for (const n of numbers) {
        await tenure.events.publish({ projectId: "p1", type: "counted", data: { n } })
      }
    }

    beforeAll(async () => {
      files = {
        page: ["text/html", await readFile(pathOf("page.html"), "utf8")],
        "client.js": ["text/javascript", await bundle()],
      }
      port = await freePort()
      await openStores()
      browser = await launch()
      const key = await tenure.apiKeys.issue({ projects: "all", role: "admin" })
      token = key.token
    })

    afterAll(async () => {
      await browser?.close()
      await tenure?.close()
    })

    it.each([
      ["the client", "127.0.0.1"],
      ["the client", "localhost"],
      ["EventSource", "127.0.0.1"],
      ["WebSocket", "127.0.0.1"],
      ["WebSocket", "localhost"],
    ])(
      "follows the feed by %s, and misses nothing when the server dies (on %s)",
      async (by, host) => {
        await tenure.memberships.createProject("p1")
        await start()
        const page = await browser.newPage()
        const query = new URLSearchParams({ by, api: `http://127.0.0.1:${port}` })
        const numbers = () => page.evaluate("window.numbers")
        await publish([0, 1, 2])
        await page.goto(`http://${host}:${port}/page?${query}`)
        await expect.poll(numbers).toEqual([0, 1, 2])
        await publish([3])
        await expect.poll(numbers).toEqual([0, 1, 2, 3])
        await kill()
        await publish([4, 5])
        await expect.poll(() => page.evaluate("window.retries")).toBeGreaterThan(0)
        await tenure.close()
        await openStores()
        await start()
        await publish([6])
        await expect.poll(numbers).toEqual([0, 1, 2, 3, 4, 5, 6])
        await page.close()
        await kill()
        await tenure.memberships.deleteProject("p1")
      },
    )
  },
)
