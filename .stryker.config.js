/**
 * Mutation testing puts small faults into the modules below, one at a time. The tests of these modules
 * must notice at least nine in ten.
 */
export default {
  mutate: [
    "packages/core/src/base/Instant.ts",
    "packages/core/src/http/Page.ts",
    "packages/core/src/http/Query.ts",
    "packages/core/src/limits/Decider.ts",
    "packages/core/src/limits/Decision.ts",
    "packages/core/src/limits/RateLimiter.ts",
    "packages/core/src/limits/TokenBucket.ts",
    "packages/core/src/memberships/EndDate.ts",
    "packages/core/src/webhooks/AddressPolicy.ts",
    "packages/core/src/webhooks/WebhookSignature.ts",
  ],
  // Only the core is copied to the folder in which the faults are made.
  ignorePatterns: ["**", "!packages/core/{src,test}/**/*.ts", "!packages/core/package.json"],
  plugins: ["@stryker-mutator/vitest-runner"],
  testRunner: "vitest",
  vitest: { configFile: "packages/core/test/mutants/vitest.config.ts" },
  coverageAnalysis: "perTest",
  // A test that is slow on a busy machine must not count as one that notices a fault.
  timeoutMS: 30_000,
  concurrency: 2,
  reporters: ["clear-text", "progress-append-only"],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  thresholds: { high: 95, low: 90, break: 90 },
}
