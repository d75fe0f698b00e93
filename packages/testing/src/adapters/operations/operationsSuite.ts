/** The operations of the API. */

import type { Serving } from "../AdapterHarness.ts"
import { apiKeyTests } from "./apiKeys.ts"
import { auditTests } from "./audit.ts"
import { conditionTests } from "./conditions.ts"
import { eventTests } from "./events.ts"
import { extendAllTests } from "./extendAll.ts"
import { extendOneTests } from "./extendOne.ts"
import { grantingTests } from "./granting.ts"
import { idempotencyTests } from "./idempotency.ts"
import { identityTests } from "./identity.ts"
import { importingTests } from "./importing.ts"
import { projectTestsOn } from "./projects.ts"
import { statusTests } from "./status.ts"
import { ticketTests } from "./tickets.ts"
import { webhookRepairTests } from "./webhookRepair.ts"
import { webhookTests } from "./webhooks.ts"

/** Declares the tests. */
export const operationsSuite = (serving: Serving): void => {
  extendOneTests(serving)
  extendAllTests(serving)
  conditionTests(serving)
  grantingTests(serving)
  importingTests(serving)
  projectTestsOn(serving)
  auditTests(serving)
  webhookTests(serving)
  webhookRepairTests(serving)
  eventTests(serving)
  idempotencyTests(serving)
  apiKeyTests(serving)
  identityTests(serving)
  ticketTests(serving)
  statusTests(serving)
}
