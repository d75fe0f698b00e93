/** A Tenure server in this process, what commands need to use it, and a proxy in front, which breaks connections as a test wants it. */

import { mkdirSync, writeFileSync } from "node:fs"
import {
  type IncomingMessage,
  type ServerResponse,
  createServer,
  request as requestOf,
} from "node:http"
import { join } from "node:path"
import { type CreateTenureOptions, createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { nodeTransport, serve } from "@tenure/node-http"
import { freePort } from "@tenure/testing/conformance"
import { afterAll, beforeAll, onTestFinished } from "vitest"
import { temporaryFolder, tenureWith } from "./in-process.ts"

/** An admin's token. */
export const token = "tnr_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"

const plenty = { limit: 100_000, window: "1 minute" } as const

/** Starts a server with an admin's key and without limits that matter. */
export const startServer = async (options: Partial<CreateTenureOptions> = {}) => {
  const tenure = await createTenure({
    stores: memory(),
    transport: nodeTransport,
    webhooks: { allowedNetworks: ["127.0.0.0/8"] },
    rateLimits: { perKey: plenty, perAddress: plenty, burst: plenty },
    ...options,
  })
  if ((await tenure.apiKeys.list()).length === 0)
    await tenure.apiKeys.issue({ projects: "all", role: "admin", name: "an admin", token })
  const { close, url } = await serve(tenure, { port: 0, shutdownTimeout: 0 })
  const stop = async () => {
    await close()
    await tenure.close()
  }
  return { url, stop }
}

/** Runs a server while a file's tests do. */
export const useServer = (options: Partial<CreateTenureOptions> = {}) => {
  const parent = temporaryFolder()
  let server: Awaited<ReturnType<typeof startServer>>
  let count = 0

  beforeAll(async () => {
    server = await startServer(options)
  })
  afterAll(() => server?.stop())

  const environment = () => ({
    TENURE_URL: server.url,
    TENURE_TOKEN: token,
    XDG_CONFIG_HOME: parent,
  })

  return {
    folder: parent,
    url: () => server.url,
    environment,
    ...tenureWith(environment),
    /** Makes a project, a folder for its files, and commands in it. */
    begin: async () => {
      count += 1
      const folder = join(parent, String(count))
      mkdirSync(folder)
      const inProject = { ...environment(), TENURE_PROJECT: `project-${count}` }
      const tenure = tenureWith(inProject)
      await tenure.print`projects create ${inProject.TENURE_PROJECT}`
      const pathOf = (name: string): string => join(folder, name)
      const fileWith = (name: string, ...lines: ReadonlyArray<string>): string => {
        writeFileSync(pathOf(name), lines.join("\n"))
        return pathOf(name)
      }
      return { ...tenure, folder, environment: inProject, pathOf, fileWith }
    },
  }
}

/** What happens with a request: it is passed on, its answer is lost, or the test answers it or does not. */
type Passing = "passed" | "lost" | "kept"

/** Starts one until the test ends, and returns its URL. */
export const startProxy = async (
  server: string,
  decide: (request: IncomingMessage, response: ServerResponse) => Passing,
): Promise<string> => {
  const proxy = createServer((request, response) => {
    const passing = decide(request, response)
    if (passing === "kept") return
    const { headers, method = "GET", url = "/" } = request
    const onward = requestOf(new URL(url, server), { method, headers }, (answer) => {
      if (passing === "lost") return void request.socket.destroy()
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(response)
    })
    onward.on("error", () => request.socket.destroy())
    request.pipe(onward)
  })
  const port = await freePort()
  await new Promise<void>((resolve) => proxy.listen(port, "127.0.0.1", resolve))
  onTestFinished(() => {
    proxy.closeAllConnections()
    proxy.close()
  })
  return `http://127.0.0.1:${port}`
}
