/** Runs the program in a runtime, and tests its servers. */

import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import type { Promises } from "@tenure/core"
import type { AdapterHarness } from "@tenure/testing/conformance"
import { afterAll } from "vitest"

const pathOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** The runtimes themselves, because killing a wrapper would leave them running. */
export const binaries = {
  bun: pathOf("node_modules/bun/bin/bun.exe"),
  deno: pathOf("node_modules/deno/deno"),
}

const services = ["memberships", "webhooks", "apiKeys", "events"]

type Ask = (question: object) => Promise<unknown>

const asking =
  (control: string): Ask =>
  async (question) => {
    const response = await fetch(control, { method: "POST", body: JSON.stringify(question) })
    const { error, value } = JSON.parse(await response.text())
    if (error !== undefined) throw new Error(error)
    return value
  }

/** Returns a server's services in the other process. */
function promisesOf(ask: Ask, port: number): Promises
function promisesOf(ask: Ask, port: number): object {
  const serviceOf = (service: string) =>
    new Proxy(
      {},
      {
        get:
          (_, method) =>
          (...args: unknown[]) =>
            ask({ port, service, method, args }),
      },
    )
  return Object.fromEntries(services.map((name) => [name, serviceOf(name)]))
}

/**
 * Starts the program in a runtime until the tests end.
 *
 * @param args - the runtime's arguments
 */
export const inRuntime = (
  name: keyof typeof binaries,
  args: ReadonlyArray<string> = [],
): AdapterHarness => {
  const child = spawn(binaries[name], [...args, pathOf("program.ts")], {
    stdio: ["ignore", "pipe", "inherit"],
  })
  const control = new Promise<string>((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`exit code ${code}`)))
    createInterface(child.stdout).on("line", (line) => {
      if (line.startsWith("http://")) resolve(line)
    })
  })
  afterAll(() => void child.kill())
  return {
    start: async (options, mount) => {
      const ask = asking(await control)
      const port = Number(Object(await ask({ options, mount })).port)
      const close = async () => void (await ask({ port }))
      return { url: `http://127.0.0.1:${port}`, tenure: promisesOf(ask, port), close }
    },
  }
}
