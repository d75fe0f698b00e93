/** Operations on Tenure's own state. */

import * as Effect from "effect/Effect"
import { ofResource } from "../api/declaration.ts"
import { statusOperations } from "../api/service-info.ts"
import { Activity, type ActivityReport } from "../health/activity.ts"
import { Status, type StatusReport, type WebhookNeedingAttention } from "../health/status.ts"
import { type OperationsOn, isoOrNull, perform, requireAllProjects } from "./operation.ts"
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
  versions: { tenure: version, api: "v2" as const },
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

type Operate = OperationsOn<"status">["status.get"]

/** Refuses a principal without access to all projects, before other errors in the request. */
const forAllProjects =
  (operate: Operate): Operate =>
  (call) =>
    Effect.andThen(requireAllProjects(call), operate(call))

/**
 * Makes the operations.
 *
 * @param maxBodyBytes - the longest request body, in bytes
 */
export const makeStatusOperations = Effect.fnUntraced(function* (maxBodyBytes: number) {
  const { report } = yield* Status
  const activity = yield* Activity

  return ofResource("status", {
    get: forAllProjects(
      perform(statusOperations.get, maxBodyBytes, () =>
        Effect.map(report, (found) => ({ data: dataOf(found) })),
      ),
    ),

    activity: forAllProjects(
      perform(statusOperations.activity, maxBodyBytes, () =>
        Effect.map(activity.report, (found) => ({ data: activityOf(found) })),
      ),
    ),
  }) satisfies OperationsOn<"status">
})
