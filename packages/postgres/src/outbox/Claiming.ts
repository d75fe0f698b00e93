/** The claims of this process. */

import * as LastAttempt from "@tenure/core/LastAttempt"
import * as Moment from "@tenure/core/Moment"
import type { Claim, Outbox } from "@tenure/core/Outbox"
import type { WebhookId } from "@tenure/core/Webhook"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { Executor } from "../connection/Executor.ts"
import { nilUuid } from "../connection/parameters.ts"
import {
  claim as claimSql,
  claimParams,
  type ClaimRow,
  keptBack,
  type Lease,
  nextDueMillis,
  nextPosition,
  type Position,
  toClaimedAll,
} from "./claim.sql.ts"
import { giveUp, giveUpParams, unreadable } from "./giveUp.sql.ts"
import * as HeldClaims from "./HeldClaims.ts"
import type { Notifications } from "./Notifications.ts"
import * as Presence from "./Presence.ts"

/** Claims deliveries. */
interface Claiming {
  readonly claim: Outbox["Service"]["claim"]
  /** Has the next claim look first at a webhook that has just received something. */
  readonly served: (webhookId: WebhookId) => void
  /** Forgets a claim that was settled, or that has lapsed. */
  readonly settled: (claim: Claim) => void
}

const maxServed = 256

/** Starts without claims. */
export const make = Effect.fnUntraced(function* (executor: Executor, notifications: Notifications) {
  const { schema } = executor
  const sql = { claim: claimSql(schema), giveUp: giveUp(schema) }
  const clock = yield* Clock.Clock
  const held = HeldClaims.make()
  const presence = yield* Presence.make(executor, notifications, held)
  // One claim at a time: an answer is lost only if the next claim does not know of its leases.
  const turn = yield* Semaphore.make(1)
  const served = new Set<WebhookId>()
  let position: Position = { dispatcher: presence.id, lastLease: 0n, lastWebhook: nilUuid }

  /** Ends deliveries that cannot be read. What fails here is repeated when the leases have passed. */
  const giveUpOn = Effect.fnUntraced(
    function* (leases: ReadonlyArray<Lease>) {
      if (leases.length === 0) return
      const at = yield* Clock.currentTimeMillis
      yield* executor.executeApart(sql.giveUp, giveUpParams(leases, at))
      for (const { attemptNumber, event, webhook } of leases) {
        const last = { ...webhook, eventId: event.id, attemptNumber, result: unreadable }
        yield* LastAttempt.logGivenUp(last)
      }
      // Their webhooks may have others.
      yield* notifications.notify
    },
    Effect.catchCause((cause) => Effect.logWarning("Deliveries cannot be ended", cause)),
  )

  const claim: Claiming["claim"] = Effect.fnUntraced(function* (options) {
    yield* presence.begin
    const params = claimParams(options, position, [...served])
    served.clear()
    const rows = yield* executor.executeApart<ClaimRow>(sql.claim, params)
    position = nextPosition(position, rows)
    const claimed = toClaimedAll(rows)
    yield* giveUpOn(claimed.flatMap((one) => (one.claim === undefined ? [one.lease] : [])))
    const claims = claimed.flatMap((one) => one.claim ?? [])
    held.add(claims, Moment.tick(clock) + options.leaseMillis)
    return {
      claims,
      nextDueMillis: nextDueMillis(rows, options),
      keptBack: keptBack(rows),
    }
  }, turn.withPermit)

  const claiming: Claiming = {
    claim,
    served: (webhookId) => {
      if (served.size < maxServed) served.add(webhookId)
    },
    settled: held.delete,
  }
  return claiming
})
