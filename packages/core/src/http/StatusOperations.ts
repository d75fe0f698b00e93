/** The operations that tell how Tenure is doing. */

import * as Effect from "effect/Effect"
import { Activity, type Report as Hour } from "../health/Activity.ts"
import { type Report, Status } from "../health/Status.ts"
import { type OperationsOn, permitAll, timeOf } from "./Operation.ts"
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
  failed_deliveries: backlog?.failedDeliveries ?? null,
  disabled_webhooks: backlog?.disabledWebhooks ?? null,
  suspended_keys: suspendedKeys,
})

const activityOf = ({ minutes, refusals }: Hour) => ({
  minutes: minutes.map(({ at, ...counts }) => ({ at: timeOf(at), ...counts })),
  refusals: refusals.map(({ keyId, refused }) => ({ key_id: keyId ?? null, refused })),
})

/** Makes the operations. */
export const make = Effect.gen(function* () {
  const { report } = yield* Status
  const activity = yield* Activity

  return {
    "status.get": Effect.fnUntraced(function* (call) {
      yield* permitAll(call)
      yield* Query.read(call.request, {})
      return { message: "The status of this server.", data: dataOf(yield* report) }
    }),

    "status.activity": Effect.fnUntraced(function* (call) {
      yield* permitAll(call)
      yield* Query.read(call.request, {})
      return {
        message: "What this server has done in the last hour.",
        data: activityOf(yield* activity.report),
      }
    }),
  } satisfies OperationsOn<"status">
})
