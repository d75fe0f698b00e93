/** The bundled server, as a process of its own. */

import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { afterAll, beforeAll, inject } from "vitest"
import { bareEnvironment } from "./programs.ts"

/** The token of an admin. */
export const token = "tnr_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"

/** A server that listens. */
export interface Server {
  readonly url: string
  readonly stop: () => Promise<void>
}

/** Starts the server with an admin's key and without limits that matter. */
export const startServer = async (
  environment: Readonly<Record<string, string>> = {},
): Promise<Server> => {
  const folder = mkdtempSync(join(tmpdir(), "tenure-server-"))
  const seed = join(folder, "seed.json")
  writeFileSync(seed, JSON.stringify({ projects: [], api_keys: [{ token, role: "admin" }] }))
  const child = spawn(process.execPath, [inject("serverFile")], {
    env: {
      ...bareEnvironment,
      PORT: "0",
      DATABASE_URL: "memory:",
      SEED_FILE: seed,
      RATE_LIMIT_PER_KEY: "100000",
      RATE_LIMIT_PER_IP: "100000",
      RATE_LIMIT_BURST: "100000",
      WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
      ...environment,
    },
    stdio: ["ignore", "pipe", "inherit"],
  })
  const ended = new Promise<void>((resolve) => {
    child.once("close", () => resolve())
  })
  const url = await new Promise<string>((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`exit code ${code}`)))
    createInterface(child.stdout).on("line", (line) => {
      const [, found] = /Tenure listens on ([^\s"]+)/.exec(line) ?? []
      if (found !== undefined) resolve(found)
    })
  })
  return {
    url,
    stop: async () => {
      child.kill("SIGKILL")
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Has a server run while the tests of a file do, and then calls a function with its environment. */
export const useServer = (
  prepare: (environment: Readonly<Record<string, string>>) => Promise<unknown> = async () => {},
) => {
  let server: Server | undefined
  const url = (): string => {
    if (server === undefined) throw new TypeError("It has not started.")
    return server.url
  }
  const environment = () => ({ TENURE_URL: url(), TENURE_TOKEN: token })
  beforeAll(async () => {
    server = await startServer()
    await prepare(environment())
  })
  afterAll(() => server?.stop())
  return { url, environment }
}
