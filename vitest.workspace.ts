import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

const pathOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

// Programs that tests start, dozens of them, take half the time if Node does not compile them anew.
process.env["NODE_COMPILE_CACHE"] ??= pathOf("node_modules/.cache/node")

/** Packages are tested from their sources, as they are run in development. */
const conditions = ["@tenure/source"]

interface More {
  readonly name?: string
  readonly globalSetup?: string
}

const project = (folder: string, more: More = {}) => ({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    name: folder.split("/").at(-1) ?? folder,
    ...more,
    // One root for all: what is transformed for a project is not transformed again for others.
    root: pathOf("."),
    include: [`${folder}/test/**/*.test.ts`],
    // No test is about these times: they end what hangs, and a busy machine is slow.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000, interval: 20 } },
    // Files share a process, where modules are loaded once: no test leaves anything behind.
    isolate: false,
    restoreMocks: true,
  },
})

export default defineConfig({
  test: {
    // Tests also wait, for other processes and for time to pass: two more keep all processors busy.
    maxWorkers: availableParallelism() + 2,
    globalSetup: ["scripts/temporary-files.ts", "packages/postgres/test/global-setup.ts"],
    projects: [
      project("packages/better-auth"),
      project("packages/cli"),
      project("packages/client"),
      project("packages/console"),
      project("packages/core"),
      project("packages/embedded"),
      project("packages/express"),
      project("packages/fastify"),
      project("packages/fetch"),
      project("packages/lab"),
      project("packages/memory"),
      project("packages/node-http"),
      project("packages/postgres"),
      project("packages/redis"),
      project("packages/stripe"),
      project("packages/tenure"),
      project("packages/testing"),
      project("examples/custom-store"),
      project("examples/effect-app"),
      project("examples/express-app"),
      project("examples/node-server", {
        globalSetup: pathOf("examples/node-server/test/global-setup.ts"),
      }),
      project("examples/testing", { name: "testing-example" }),
      project("docs"),
    ],
  },
})
