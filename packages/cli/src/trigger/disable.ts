/** Makes a webhook be disabled. */

import * as Effect from "effect/Effect"
import { call } from "../connection/Api.ts"
import { listen } from "../connection/loopback.ts"
import { type Failure, failed } from "../Failure.ts"

// By a 410, a receiver says that it is gone for good.
const gone = 410

// How long the disabling may take, in seconds.
const patience = 10

const register = (project_id: string, url: string) =>
  call(({ webhooks }, options) =>
    webhooks.create({ project_id, url, event_types: ["webhook.ping"] }, options),
  ).pipe(
    Effect.mapError((failure: Failure) =>
      failure.code === "VALIDATION_ERROR"
        ? failed(
            `${failure.message} To see it, use a server that may send to this machine: tenure dev, or WEBHOOK_ALLOWED_NETWORKS=127.0.0.0/8.`,
          )
        : failure,
    ),
  )

const unregister = (project_id: string, webhook_id: string) =>
  Effect.ignore(
    call(({ webhooks }, options) => webhooks.delete({ project_id, webhook_id }, options)),
  )

/** Has a webhook notified whose receiver is gone, and which exists only meanwhile. */
export const disable = Effect.fnUntraced(function* (project_id: string) {
  const url = yield* listen(() => gone)
  const { data } = yield* Effect.acquireRelease(register(project_id, url), (registered) =>
    unregister(project_id, registered.data.id),
  )
  const webhook = { project_id, webhook_id: data.id }
  const { next } = yield* call(({ events }, options) => events.list({ project_id }, options))
  yield* call(({ webhooks }, options) => webhooks.ping(webhook, options))
  const disabled = { project_id, types: "webhook.disabled", after: next, wait: String(patience) }
  yield* call(({ events }, options) => events.list(disabled, options))
  const found = yield* call(({ webhooks }, options) => webhooks.health({ project_id }, options))
  if (!found.data.some(({ disabled_at, id }) => id === data.id && disabled_at !== null))
    return yield* failed(
      `Nothing has reached this machine in ${patience} s. Does a server run here that dispatches?`,
    )
}, Effect.scoped)
