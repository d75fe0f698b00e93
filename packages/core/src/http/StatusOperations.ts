/** The operation that tells how Tenure is doing. */

import * as Effect from "effect/Effect"
import { type Report, Status } from "../health/Status.ts"
import { type OperationsOn, permitAll } from "./Operation.ts"
import * as Query from "./Query.ts"

const dataOf = ({ backlog, stores, suspendedKeys, version }: Report) => ({
  versions: { tenure: version, api: "v2" },
  stores: {
    memberships: stores.memberships,
    webhooks: stores.webhooks,
    api_keys: stores.apiKeys,
    deliveries: stores.deliveries,
    rate_limits: stores.rateLimits,
  },
  backlog:
    backlog === undefined
      ? null
      : { waiting: backlog.waiting, due_for_ms: backlog.dueForMillis ?? null },
  disabled_webhooks: backlog?.disabledWebhooks ?? null,
  suspended_keys: suspendedKeys,
})

/** Makes the operation. */
export const make = Effect.gen(function* () {
  const { report } = yield* Status

  return {
    "status.get": Effect.fnUntraced(function* (call) {
      yield* permitAll(call)
      yield* Query.read(call.request, {})
      return { message: "The status of this server.", data: dataOf(yield* report) }
    }),
  } satisfies OperationsOn<"status">
})
