import { defineConfig } from "vitest/config"

const conditions = ["@tenure/source"]

/** The tests that mutation testing runs: those of the mutated modules, without a database. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    root: "packages/core",
    include: [
      "test/http/page.test.ts",
      "test/http/query.test.ts",
      "test/limits/rate-limiter.test.ts",
      "test/limits/token-bucket.test.ts",
      "test/memberships/end-date.test.ts",
      "test/webhooks/address-policy.test.ts",
      "test/webhooks/webhook-signature.test.ts",
    ],
    setupFiles: ["test/mutants/setup.ts"],
    // A property takes its time where others are at work.
    testTimeout: 30_000,
  },
})
