/** All operations, by their names. */

import * as Effect from "effect/Effect"
import * as ApiKeyOperations from "./ApiKeyOperations.ts"
import * as AuditOperations from "./AuditOperations.ts"
import type { Authentication } from "./Authentication.ts"
import * as DocsOperations from "./DocsOperations.ts"
import * as EventOperations from "./EventOperations.ts"
import type { Settings } from "./Handler.ts"
import * as IdentityOperations from "./IdentityOperations.ts"
import * as MembershipOperations from "./MembershipOperations.ts"
import type { Operations } from "./Operation.ts"
import * as ProjectOperations from "./ProjectOperations.ts"
import * as RealtimeOperations from "./RealtimeOperations.ts"
import * as StatusOperations from "./StatusOperations.ts"
import * as WebhookOperations from "./WebhookOperations.ts"

/**
 * Makes the operations.
 *
 * @param renewal - returns what finds out again who sent a request
 */
export const make = Effect.fnUntraced(function* (
  settings: Settings,
  renewal: Authentication["renewal"],
) {
  const { maxBodyBytes } = settings
  return {
    ...(yield* MembershipOperations.make(maxBodyBytes)),
    ...(yield* ProjectOperations.make),
    ...(yield* WebhookOperations.make(maxBodyBytes)),
    ...(yield* EventOperations.make(maxBodyBytes, renewal)),
    ...(yield* ApiKeyOperations.make(maxBodyBytes)),
    ...(yield* RealtimeOperations.make(maxBodyBytes)),
    ...IdentityOperations.make(),
    ...(yield* AuditOperations.make),
    ...(yield* StatusOperations.make),
    ...(yield* DocsOperations.make(settings)),
  } satisfies Operations
})
