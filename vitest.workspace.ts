import { defineConfig } from "vitest/config"

/** Packages are tested from their sources, as they are run in development. */
const conditions = ["@tenure/source"]

const project = (root: string, name = root.split("/").at(-1) ?? root) => ({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  // A property takes its time where others are at work.
  test: { name, root, include: ["test/**/*.test.ts"], testTimeout: 30_000 },
})

export default defineConfig({
  test: {
    globalSetup: ["packages/postgres/test/globalSetup.ts"],
    projects: [
      project("packages/core"),
      project("packages/express"),
      project("packages/fastify"),
      project("packages/fetch"),
      project("packages/fuzz"),
      project("packages/memory"),
      project("packages/node-http"),
      project("packages/postgres"),
      project("packages/testing"),
      project("examples/custom-store"),
      project("examples/effect-app"),
      project("examples/express-app"),
      project("examples/node-server"),
      project("examples/testing", "testing-example"),
      project("docs"),
    ],
  },
})
