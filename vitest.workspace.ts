/** The quick tests, in one process, and with `--mode system` the tests with processes, kills, or their own servers. */

import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

const pathOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

// Tests start dozens of programs, which take half the time if Node does not compile them anew.
process.env["NODE_COMPILE_CACHE"] ??= pathOf("node_modules/.cache/node")

/** Packages are tested from their sources, as they are run in development. */
const conditions = ["@tenure/source"]

/** Folders with tests that start the server and the command. The others need no bundles. */
const starting = ["docs", "examples/node-server", "packages/{cli,console,lab,server}"]

const everywhere = ["docs", "examples/*", "packages/*"]

export default defineConfig(({ mode }) => {
  const suffix = mode === "system" ? "system" : "test"
  const filesIn = (folder: string) => `${folder}/test/**/*.${suffix}.ts`

  const project = (name: string, more: object) => ({
    resolve: { conditions },
    ssr: { resolve: { conditions } },
    test: {
      name,
      // One root for all: what is transformed for a project is not transformed again for others.
      root: pathOf("."),
      ...more,
      // No test is about these times: they end what hangs, and a busy machine is slow.
      testTimeout: 120_000,
      hookTimeout: 120_000,
      expect: { poll: { timeout: 60_000, interval: 20 } },
      // Files share a process, where modules are loaded once: no test leaves anything behind.
      isolate: false,
      restoreMocks: true,
    },
  })

  return {
    test: {
      // Tests also wait, for other processes and for time to pass: two more keep all processors busy.
      maxWorkers: availableParallelism() + 2,
      // What one file leaves behind for the next shows in some order. Its seed is printed.
      sequence: { shuffle: { files: true } },
      globalSetup: ["scripts/temporary-files.ts", "packages/postgres/test/global-setup.ts"],
      projects: [
        project("alone", {
          include: everywhere.map(filesIn),
          exclude: starting.map(filesIn),
        }),
        project("starting", {
          include: starting.map(filesIn),
          globalSetup: pathOf("scripts/programs.ts"),
        }),
      ],
    },
  }
})
