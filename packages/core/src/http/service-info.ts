/** The operations that tell how Tenure is doing. */

import * as Effect from "effect/Effect"
import { Activity, type ActivityReport } from "../health/activity.ts"
import { Status, type StatusReport, type WebhookNeedingAttention } from "../health/status.ts"
import { type OperationsOn, isoOrNull, readQuery, requireAllProjects } from "./operation.ts"
import { latestAttemptOf } from "./webhooks.ts"

const reasons = {
  disabled: "disabled",
  failing: "failing",
  unreadableSecret: "unreadable_secret",
} as const

const attentionOf = (webhook: WebhookNeedingAttention) => ({
  project_id: webhook.projectId,
  id: webhook.webhookId,
  url_host: new URL(webhook.url).host,
  description: webhook.description ?? null,
  reason: reasons[webhook.reason],
  since: isoOrNull(webhook.since),
  last_attempt: latestAttemptOf(webhook),
  waiting: webhook.waiting,
})

const dataOf = ({
  backlog,
  missingEncryptionKeys,
  rateLimiting,
  stores,
  suspendedKeys,
  version,
  webhooksNeedingAttention,
}: StatusReport) => ({
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
      : {
          waiting: backlog.waiting,
          due_for_ms: backlog.dueForMillis ?? null,
          late_for_ms: backlog.lateForMillis ?? null,
        },
  failed_deliveries: backlog?.failedDeliveries ?? null,
  disabled_webhooks: backlog?.disabledWebhooks ?? null,
  webhooks_needing_attention: webhooksNeedingAttention?.map(attentionOf) ?? null,
  rate_limiting: rateLimiting,
  suspended_keys: suspendedKeys,
  missing_encryption_keys: missingEncryptionKeys ?? null,
})

const activityOf = ({ minutes, refusals }: ActivityReport) => ({
  minutes: minutes.map(({ at, ...counts }) => ({ at: isoOrNull(at), ...counts })),
  refusals: refusals.map(({ keyId, refused }) => ({ key_id: keyId ?? null, refused })),
})

/** Makes the operations. */
export const makeStatusOperations = Effect.gen(function* () {
  const { report } = yield* Status
  const activity = yield* Activity

  return {
    "status.get": Effect.fnUntraced(function* (call) {
      yield* requireAllProjects(call)
      yield* readQuery(call.request, {})
      return { message: "The status of this server.", data: dataOf(yield* report) }
    }),

    "status.activity": Effect.fnUntraced(function* (call) {
      yield* requireAllProjects(call)
      yield* readQuery(call.request, {})
      return {
        message: "What was delivered in the last hour, and what this server refused.",
        data: activityOf(yield* activity.report),
      }
    }),
  } satisfies OperationsOn<"status">
})
