/** The presence of this process among those that dispatch deliveries. */

import * as Moment from "@tenure/core/Moment"
import { WebhookId } from "@tenure/core/Webhook"
import * as Clock from "effect/Clock"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { Executor } from "../connection/Executor.ts"
import { uuid, uuids } from "../connection/parameters.ts"
import type { HeldClaims } from "./HeldClaims.ts"
import type { Notifications } from "./Notifications.ts"
import { report, type ReportRow } from "./report.sql.ts"

// Several reports fit into the silence after which a process counts as gone.
const reportMillis = 300

/** A dispatcher that the others know of. */
interface Presence {
  /** The id of the dispatcher: a new one in each process. */
  readonly id: string
  /** Starts to report that the dispatcher is alive. Does nothing if it reports already. */
  readonly begin: Effect.Effect<void>
}

/**
 * Makes a dispatcher that reports for as long as the scope is open. If another one is gone, it wakes those
 * that claim: the next claim takes over what that one had claimed. It also tells of the removal of
 * webhooks whose claims this process holds: the notification of it may have been lost.
 */
export const make = Effect.fnUntraced(function* (
  executor: Executor,
  notifications: Notifications,
  held: HeldClaims,
) {
  const clock = yield* Clock.Clock
  const id = (yield* WebCrypto).randomUUID()
  const begun = yield* Latch.make()
  const sql = report(executor.schema)

  const reportOnce = Effect.gen(function* () {
    const webhooks = uuids(held.webhooks(Moment.tick(clock)))
    const [row] = yield* executor.executeApart<ReportRow>(sql, [uuid(id), webhooks])
    if (row === undefined) return
    if (row.is_any_gone) yield* notifications.notify
    yield* notifications.removed(row.removed.map(WebhookId))
  })

  yield* Effect.forkScoped(
    Effect.andThen(
      begun.await,
      Effect.forever(Effect.andThen(Effect.ignoreCause(reportOnce), Effect.sleep(reportMillis))),
    ),
  )

  const presence: Presence = { id, begin: begun.open }
  return presence
})
