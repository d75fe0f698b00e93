/** The operation on the audit trail of what belongs to no project. */

import * as Effect from "effect/Effect"
import { Memberships } from "../memberships/Memberships.ts"
import * as AuditData from "./AuditData.ts"
import { type OperationsOn, permitAll } from "./Operation.ts"
import * as Page from "./Page.ts"
import * as Query from "./Query.ts"

/** Makes the operation. */
export const make = Effect.gen(function* () {
  const memberships = yield* Memberships

  return {
    "audit.list": Effect.fnUntraced(function* (call) {
      yield* permitAll(call)
      const { after, limit } = yield* Query.read(call.request, Query.page)
      const found = yield* memberships.history({ projectId: null, after, limit: limit + 1 })
      return {
        message: "The audit trail of projects and API keys, newest first.",
        ...Page.of(found, limit, ({ cursor }) => cursor, AuditData.of),
      }
    }),
  } satisfies OperationsOn<"audit">
})
