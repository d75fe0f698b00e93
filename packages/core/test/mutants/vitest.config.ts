import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

const conditions = ["@tenure/source"]

/**
 * Tests for the mutated modules, without a server or a database. Each mutant meets them in this order until one fails:
 * tests with most rules about time are first, because every module needs it, and slow ones last.
 */
const tests = [
  "core/test/base/time.test.ts",
  "core/test/memberships/end-date.test.ts",
  "core/test/base/change-context.test.ts",
  "core/test/http/operation.test.ts",
  "core/test/limits/buckets.test.ts",
  "core/test/limits/rate-limiter.test.ts",
  "core/test/memberships/expiry.test.ts",
  "core/test/webhooks/claim-budget.test.ts",
  "core/test/webhooks/delivery-activity.test.ts",
  "core/test/webhooks/replay.test.ts",
  "core/test/webhooks/signature.test.ts",
  "core/test/webhooks/transport.test.ts",
  "core/test/webhooks/verdict.test.ts",
  "stripe/test/paid-until.test.ts",
  "core/test/limits/clocks.test.ts",
  "core/test/memberships/duration.test.ts",
  "core/test/memberships/ends.test.ts",
]

const placeOf = ({ moduleId }: TestSpecification): number =>
  tests.findIndex((test) => moduleId.endsWith(test))

class ListedOrder extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    return files.toSorted((one, other) => placeOf(one) - placeOf(other))
  }
}

/** Configures the tests for mutation testing. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    root: "packages",
    include: tests,
    sequence: { sequencer: ListedOrder },
    setupFiles: ["core/test/mutants/setup.ts"],
    // A property takes long on a busy machine.
    testTimeout: 30_000,
  },
})
