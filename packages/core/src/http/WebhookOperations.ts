/** The operations on webhooks. */

import * as Effect from "effect/Effect"
import { own } from "../base/Own.ts"
import type { Webhook } from "../webhooks/Webhook.ts"
import { Webhooks } from "../webhooks/Webhooks.ts"
import * as WebhookUrl from "../webhooks/WebhookUrl.ts"
import { bodyOf, idOf, type OperationsOn, originOf, projectOf } from "./Operation.ts"

const dataOf = ({ id, secret, url }: Webhook) => ({ url, id, secret })

/**
 * Makes the operations.
 *
 * @param maxBodyBytes - the longest request body, in bytes
 */
export const make = Effect.fnUntraced(function* (maxBodyBytes: number) {
  const webhooks = yield* Webhooks

  return {
    "webhooks.list": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      const list = yield* webhooks.list({ projectId })
      return {
        total: list.length,
        message: "The webhooks of the project.",
        data: list.map(dataOf),
      }
    }),

    "webhooks.create": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      const body = yield* bodyOf(call, maxBodyBytes)
      const url = yield* Effect.fromResult(WebhookUrl.decodeText(own(body, "url")))
      const webhook = yield* webhooks.create(
        { projectId, url, idempotencyKey: call.once },
        originOf(call),
      )
      return { message: "The webhook was created.", data: dataOf(webhook) }
    }),

    "webhooks.delete": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      const webhookId = yield* idOf(call.params.webhook_id)
      yield* webhooks.delete({ projectId, webhookId, idempotencyKey: call.once }, originOf(call))
      return { message: "The webhook was deleted.", data: null }
    }),
  } satisfies OperationsOn<"webhooks">
})
