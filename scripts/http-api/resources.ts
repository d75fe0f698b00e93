/** The API's resources in document order. */

import { join } from "node:path"
import { apiKeyOperations, identityOperations } from "../../packages/core/src/api/api-keys.ts"
import { auditOperations } from "../../packages/core/src/api/audit.ts"
import { eventOperations } from "../../packages/core/src/api/events.ts"
import { membershipOperations } from "../../packages/core/src/api/memberships.ts"
import { projectOperations } from "../../packages/core/src/api/projects.ts"
import { realtimeOperations } from "../../packages/core/src/api/realtime.ts"
import { statusOperations } from "../../packages/core/src/api/service-info.ts"
import { webhookOperations } from "../../packages/core/src/api/webhooks.ts"
import type { Resource } from "./print.ts"

const resource = (
  name: string,
  module: string,
  constant: string,
  operations: Resource["operations"],
): Resource => ({
  name,
  path: join(import.meta.dirname, "../../packages/core/src/api", module),
  constant,
  operations,
})

/** The resources with declared operations. The documentation's own endpoints respond without an envelope. */
export const resources: ReadonlyArray<Resource> = [
  resource("memberships", "memberships.ts", "membershipOperations", membershipOperations),
  resource("projects", "projects.ts", "projectOperations", projectOperations),
  resource("webhooks", "webhooks.ts", "webhookOperations", webhookOperations),
  resource("events", "events.ts", "eventOperations", eventOperations),
  resource("realtime", "realtime.ts", "realtimeOperations", realtimeOperations),
  resource("apiKeys", "api-keys.ts", "apiKeyOperations", apiKeyOperations),
  resource("audit", "audit.ts", "auditOperations", auditOperations),
  resource("identity", "api-keys.ts", "identityOperations", identityOperations),
  resource("status", "service-info.ts", "statusOperations", statusOperations),
]
