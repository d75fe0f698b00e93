/**
 * Mutation testing puts small faults into the modules below, one at a time. The tests of these modules
 * must notice at least nine in ten.
 */
export default {
  mutate: [
    "packages/core/src/base/time.ts",
    "packages/core/src/http/operation.ts",
    "packages/core/src/limits/buckets.ts",
    "packages/core/src/limits/rate-limiter.ts",
    "packages/core/src/memberships/duration.ts",
    "packages/core/src/memberships/end-date.ts",
    "packages/core/src/memberships/ends.ts",
    "packages/core/src/memberships/expiry.ts",
    "packages/core/src/webhooks/claim-budget.ts",
    "packages/core/src/webhooks/delivery-activity.ts",
    "packages/core/src/webhooks/replay.ts",
    "packages/core/src/webhooks/signature.ts",
    "packages/core/src/webhooks/transport.ts",
    "packages/core/src/webhooks/verdict.ts",
    "packages/stripe/src/paid-until.ts",
  ],
  // Only these files are copied to the folder in which the faults are made.
  ignorePatterns: [
    "**",
    "!packages/core/{src,test}/**/*.ts",
    "!packages/stripe/{src,test}/paid-until*.ts",
    "!packages/testing/src/**/*.ts",
    "!packages/{core,stripe,testing}/package.json",
  ],
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
