/** All operations. */

import type { ServerTest } from "../harness.ts"
import { eventTests } from "./events.ts"
import { extendingSomeTests } from "./extending-some.ts"
import { extendingTests } from "./extending.ts"
import { idempotencyTests } from "./idempotency.ts"
import { importingTests, membershipTests } from "./memberships.ts"
import { pausingTests } from "./pausing.ts"
import { keyTests, projectTests, statusTests } from "./projects.ts"
import { webhookTests } from "./webhooks.ts"

export const operationsSuite = (test: ServerTest): void => {
  extendingTests(test)
  extendingSomeTests(test)
  membershipTests(test)
  importingTests(test)
  pausingTests(test)
  projectTests(test)
  webhookTests(test)
  eventTests(test)
  idempotencyTests(test)
  keyTests(test)
  statusTests(test)
}
