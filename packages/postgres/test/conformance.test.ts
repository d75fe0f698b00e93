import {
  apiKeyStoreSuite,
  membershipStoreSuite,
  outboxSuite,
  paceSuite,
  rateLimitStoreSuite,
  replaySuite,
  webhookStoreSuite,
} from "@tenure/testing"
import * as Effect from "effect/Effect"
import { beforeAll } from "vitest"
import { execute, harnessOn } from "./harness.ts"

const harness = harnessOn("conformance")

// A database that was given may know the schema from earlier.
beforeAll(() => Effect.runPromise(execute("DROP SCHEMA IF EXISTS conformance CASCADE")))

membershipStoreSuite("postgres", harness)
webhookStoreSuite("postgres", harness)
apiKeyStoreSuite("postgres", harness)
outboxSuite("postgres", harness)
paceSuite("postgres", harness)
replaySuite("postgres", harness)
rateLimitStoreSuite("postgres", harness)
