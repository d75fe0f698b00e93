import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

const pathOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

// Programs that tests start, dozens of them, take half the time if Node does not compile them anew.
process.env["NODE_COMPILE_CACHE"] ??= pathOf("node_modules/.cache/node")

/** Packages are tested from their sources, as they are run in development. */
const conditions = ["@tenure/source"]

const test = {
  // One root for all: what is transformed for a project is not transformed again for others.
  root: pathOf("."),
  // No test is about these times: they end what hangs, and a busy machine is slow.
  testTimeout: 120_000,
  hookTimeout: 120_000,
  expect: { poll: { timeout: 60_000, interval: 20 } },
  // Files share a process, where modules are loaded once: no test leaves anything behind.
  isolate: false,
  restoreMocks: true,
}

interface Project {
  readonly name: string
  readonly folders: ReadonlyArray<string>
  readonly globalSetup?: string
}

const project = ({ name, folders, ...more }: Project) => ({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: { ...test, name, ...more, include: folders.map((folder) => `${folder}/test/**/*.test.ts`) },
})

const folders = [
  "packages/better-auth",
  "packages/cli",
  "packages/client",
  "packages/console",
  "packages/core",
  "packages/embedded",
  "packages/express",
  "packages/fastify",
  "packages/fetch",
  "packages/lab",
  "packages/memory",
  "packages/node-http",
  "packages/postgres",
  "packages/redis",
  "packages/stripe",
  "packages/tenure",
  "packages/testing",
  "examples/custom-store",
  "examples/effect-app",
  "examples/express-app",
  "examples/testing",
  "docs",
]

const server: Project = {
  name: "node-server",
  folders: ["examples/node-server"],
  globalSetup: pathOf("examples/node-server/test/global-setup.ts"),
}

const nameOf = (folder: string): string =>
  folder === "examples/testing" ? "testing-example" : (folder.split("/").at(-1) ?? folder)

// Vitest starts processes for each project, which load the same modules. So each package is a project of its own only
// for a run that names one.
const projects = process.argv.some((one) => one.startsWith("--project"))
  ? folders.map((folder): Project => ({ name: nameOf(folder), folders: [folder] }))
  : [{ name: "packages", folders }]

export default defineConfig({
  test: {
    // Tests also wait, for other processes and for time to pass: two more keep all processors busy.
    maxWorkers: availableParallelism() + 2,
    globalSetup: ["scripts/temporary-files.ts", "packages/postgres/test/global-setup.ts"],
    projects: [...projects, server].map(project),
  },
})
