/** Token bucket stores that break a promise. */

import {
  ApiKeyId,
  type BucketPolicies,
  type LimitedClient,
  Micros,
  RateLimitStore,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { wrongStores } from "./wrong-store.ts"

type Store = RateLimitStore["Service"]

/** Takes for another client, or by other policies. */
const taking =
  (change: (client: LimitedClient, by: BucketPolicies) => Parameters<Store["take"]>) =>
  ({ take }: Store): Partial<Store> => ({ take: (client, by) => take(...change(client, by)) })

export const wrongRateLimitStores = wrongStores("RateLimitStore", RateLimitStore, {
  "behaves like simple token buckets, for any sequence of takes and waits": {
    "counts nobody's takes": taking((_, by) => [
      { address: crypto.randomUUID(), keyId: undefined },
      by,
    ]),
    "takes a limit for a capacity": taking((client, by) => [
      client,
      { ...by, burst: { ...by.burst, capacity: by.burst.limit } },
    ]),
    "takes a token for a refusal": ({ take }) => ({
      take: Effect.fnUntraced(function* (client, by) {
        const taken = yield* take(client, by)
        return taken.admitted ? taken : yield* take({ ...client, keyId: undefined }, by)
      }),
    }),
    "has a key for those without one": taking((client, by) => [
      { ...client, keyId: client.keyId ?? ApiKeyId("nobody") },
      by,
    ]),
  },
  "has separate buckets for different ids, whatever characters they contain": taking(
    ({ address, keyId }, by) => [{ address: address.toLowerCase(), keyId }, by],
  ),
  "admits exactly as many concurrent takes as there are tokens": ({ take }) => {
    let shared: ReturnType<typeof take> | undefined
    return {
      take: Effect.fnUntraced(function* (client, by) {
        const own = (shared ??= yield* Effect.cached(take(client, by)))
        yield* Effect.yieldNow
        shared = undefined
        return yield* own
      }),
    }
  },
  "admits exactly as many when clients share an address or a key": taking(
    ({ address, keyId }, by) => [{ address: `${address} ${keyId}`, keyId }, by],
  ),
  "returns when each bucket will be full, by the clock of the store": ({ take }) => ({
    take: (client, by) =>
      Effect.map(take(client, by), (taken) => ({ ...taken, now: Micros(taken.now - 1000) })),
  }),
})
