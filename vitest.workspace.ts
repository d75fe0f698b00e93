import { defineConfig } from "vitest/config"

/** Packages are tested from their sources, as they are run in development. */
const conditions = ["@tenure/source"]

const project = (root: string) => ({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: { name: root.split("/").at(-1) ?? root, root, include: ["test/**/*.test.ts"] },
})

export default defineConfig({
  test: {
    globalSetup: ["packages/postgres/test/globalSetup.ts"],
    projects: [
      "packages/core",
      "packages/express",
      "packages/fastify",
      "packages/fetch",
      "packages/memory",
      "packages/node-http",
      "packages/postgres",
      "examples/custom-store",
      "examples/node-server",
      "docs",
    ].map(project),
  },
})
