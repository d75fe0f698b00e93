/** The quick tests, in one process, and with `--mode system` the tests with processes, kills, or their own servers. */

import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

const pathOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

// Tests start dozens of programs. A compile cache halves the time for these.
process.env["NODE_COMPILE_CACHE"] ??= pathOf("node_modules/.cache/node")

/** Packages are tested from their sources, as they are run in development. */
const conditions = ["@tenure/source"]

/** Folders with tests for the bundled server or command. The others need no bundles. */
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
      // One root for all, so that projects share transformed modules.
      root: pathOf("."),
      ...more,
      // Only hanging tests reach these timeouts, which are long because a busy machine is slow.
      testTimeout: 120_000,
      hookTimeout: 120_000,
      expect: { poll: { timeout: 60_000, interval: 20 } },
      // Files share a process and its loaded modules, so no test may leave anything behind.
      isolate: false,
      restoreMocks: true,
    },
  })

  return {
    test: {
      // Tests also wait, for other processes and for time to pass: two more keep all processors busy.
      maxWorkers: availableParallelism() + 2,
      // A shuffled order reveals leftovers from one file to the next. Its seed is printed.
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
