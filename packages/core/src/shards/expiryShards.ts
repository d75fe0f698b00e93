/** The part of `MembershipStore` over several shards that announces the ends of memberships. */

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Faults } from "../base/Faults.ts"
import * as Outage from "../base/Outage.ts"
import type { StoreUnavailable } from "../base/StoreUnavailable.ts"
import type { Millis } from "../base/Units.ts"
import type { Event } from "../events/Event.ts"
import type { Judge } from "../memberships/Expiry.ts"
import type { ExpiryStore, Swept } from "../memberships/ExpiryStore.ts"
import type { Shards } from "./Routing.ts"
import type { Shard } from "./Shard.ts"
import { rotated } from "./Sharing.ts"

const nothing: Swept = { events: [], isMore: false }

/**
 * Makes the store, if the home can announce ends. Every shard is watched before it is swept, also one that
 * is opened later. One that does not answer is left out, unless all are silent.
 */
export const make = ({ all, home }: Shards, faults: Faults): ExpiryStore | undefined => {
  const first = home.stores.memberships.expiry
  if (first === undefined) return undefined
  const watched = new Set<Shard>()
  const outages = new Map(
    all.map((shard) => [
      shard,
      Outage.make(faults, `Ends of memberships of the shard ${shard.name} cannot be announced`),
    ]),
  )
  let leads: ReadonlyArray<Millis>
  let turn = 0

  const sweepShard = (shard: Shard, limit: number, judge: Judge) =>
    shard
      .use(({ memberships: { expiry } }) => {
        if (expiry === undefined) return Effect.succeed(nothing)
        const watch = Effect.map(expiry.watch(leads), () => watched.add(shard))
        const sweep = expiry.sweep(limit, judge)
        return watched.has(shard) ? sweep : Effect.andThen(watch, sweep)
      })
      .pipe(
        Effect.tap(() => Effect.sync(() => outages.get(shard)?.succeeded())),
        Effect.tapCause((cause) => outages.get(shard)?.failed(cause) ?? Effect.void),
        Effect.exit,
      )

  return {
    watch: (given) => {
      leads = given
      watched.clear()
      return Effect.tap(first.watch(given), () => Effect.sync(() => watched.add(home)))
    },

    sweep: Effect.fnUntraced(function* (limit, judge) {
      const events: Array<Event> = []
      let isMore = false
      let failure: Exit.Exit<Swept, StoreUnavailable> | undefined
      let silent = 0
      for (const shard of rotated(all, turn++)) {
        // Whether the others have any, the next sweep finds out, which begins with another.
        if (events.length === limit) return { events, isMore: true }
        const exit = yield* sweepShard(shard, limit - events.length, judge)
        if (Exit.isSuccess(exit)) {
          events.push(...exit.value.events)
          isMore ||= exit.value.isMore
        } else {
          failure = exit
          silent++
        }
      }
      return failure === undefined || silent < all.length ? { events, isMore } : yield* failure
    }),
  }
}
