import {
  apiKeyStoreSuite,
  membershipStoreSuite,
  outboxSuite,
  paceSuite,
  rateLimitStoreSuite,
  replaySuite,
  webhookStoreSuite,
} from "@tenure/testing"
import { harnessOn } from "./harness.ts"

const harness = harnessOn("conformance")

membershipStoreSuite("postgres", harness)
webhookStoreSuite("postgres", harness)
apiKeyStoreSuite("postgres", harness)
outboxSuite("postgres", harness)
paceSuite("postgres", harness)
replaySuite("postgres", harness)
rateLimitStoreSuite("postgres", harness)
