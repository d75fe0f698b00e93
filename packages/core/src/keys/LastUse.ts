/**
 * Records when keys are used, apart from the requests that use them. A use is noted when the key is
 * looked up in the store, and only if the store knows of none in the minute before. So all processes
 * together write about once a minute for a key, however many requests it sends.
 */

import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import { Faults } from "../base/Faults.ts"
import * as Outage from "../base/Outage.ts"
import type { ApiKey, ApiKeyId } from "./ApiKey.ts"
import type { ApiKeyStore } from "./ApiKeyStore.ts"

/** Takes note of a use of a key at `now`, in milliseconds since the epoch. */
type Note = (key: ApiKey, now: number) => void

const precisionMillis = 60_000

// The most keys in one write. What goes beyond is noted at the next look-up.
const mostKeys = 10_000

/** The pause after a write. What is noted meanwhile is written together. */
const pause = "1 second"

/** Tells whether a use at `now` is worth a write. */
const isDue = ({ lastUsedAt }: Pick<ApiKey, "lastUsedAt">, now: number): boolean =>
  lastUsedAt === undefined || now - lastUsedAt >= precisionMillis

/** Starts to write what is noted, until the scope closes. Uses that cannot be written are dropped. */
export const make = Effect.fnUntraced(function* (store: ApiKeyStore["Service"]) {
  const writing = Outage.make(yield* Faults, "The last use of API keys cannot be recorded")
  const isNoted = yield* Latch.make()
  let noted = new Map<ApiKeyId, number>()

  const write = Effect.suspend(() => {
    const uses = noted
    noted = new Map()
    isNoted.closeUnsafe()
    return Effect.map(store.touch(uses), writing.succeeded)
  }).pipe(Effect.catchCause(writing.failed))

  yield* Effect.forkScoped(
    Effect.forever(Effect.andThen(isNoted.await, Effect.andThen(write, Effect.sleep(pause)))),
  )

  const note: Note = (key, now) => {
    if (!isDue(key, now) || noted.size === mostKeys) return
    noted.set(key.id, now)
    isNoted.openUnsafe()
  }
  return note
})
