import { defineConfig } from "vitest/config"

const conditions = ["@tenure/source"]

/** The tests that mutation testing runs: those of the mutated modules, without a database. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    root: "packages/core",
    include: [
      "test/http/Page.test.ts",
      "test/http/Query.test.ts",
      "test/limits/RateLimiter.test.ts",
      "test/limits/TokenBucket.test.ts",
      "test/memberships/EndDate.test.ts",
      "test/webhooks/AddressPolicy.test.ts",
      "test/webhooks/WebhookSignature.test.ts",
    ],
    setupFiles: ["test/mutants/setup.ts"],
    // A property takes its time where others are at work.
    testTimeout: 30_000,
  },
})
