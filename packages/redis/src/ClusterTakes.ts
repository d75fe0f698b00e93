/**
 * Takes in a cluster, where no script reaches the buckets of a key and that of an address: they are on
 * different servers. So a take takes from the buckets of the key, then from that of the address, and
 * gives back what it took from the key if the address refuses.
 *
 * No bucket ever gives more than it holds. A take whose process dies in between has cost the key a
 * token, which comes back as any other does. Until a token is given back, others miss it: those of this
 * process wait for it, and those of other processes are refused.
 */

import type { ApiKeyId } from "@tenure/core/ApiKey"
import type { Client, Policies, RateLimitStore, Take } from "@tenure/core/RateLimitStore"
import type { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import { Micros } from "@tenure/core/Units"
import * as Effect from "effect/Effect"
import type { Buckets } from "./Buckets.ts"
import * as Holds from "./Holds.ts"
import type { Names } from "./Names.ts"
import type { Tokens } from "./take.lua.ts"

// How often a take is tried again after others have given tokens back.
const mostRetries = 3

/** The outcome for a client with a key, by the clock of the server that has the key. */
const outcomeOf = (ofKey: Take, ofAddress: Take): Take => ({
  ...ofKey,
  admitted: ofKey.admitted && ofAddress.admitted,
  address: Micros(ofAddress.address - ofAddress.now + ofKey.now),
})

/** Makes the function that takes. */
export const make = (buckets: Buckets, names: Names): RateLimitStore["Service"]["take"] => {
  const holds = Holds.make()

  const askAddress = (tokens: Tokens, { address }: Client, policies: Policies) =>
    buckets.takeOne(tokens, "address", names.ofAddress(address), policies)

  const askKey = (tokens: Tokens, keyId: ApiKeyId, policies: Policies) =>
    buckets.takeOne(tokens, "key", names.ofKey(keyId), policies)

  /** Gives back what was taken from a key. If that fails, it stays taken. */
  const giveBack = (ofKey: Take, keyId: ApiKeyId, policies: Policies) =>
    Effect.orElseSucceed(askKey(-1, keyId, policies), () => ofKey)

  /** Takes from the address too. If it refuses, or does not answer, the key gets its tokens back. */
  const complete = Effect.fnUntraced(function* (
    ofKey: Take,
    client: Client,
    keyId: ApiKeyId,
    policies: Policies,
  ) {
    const ofAddress = yield* Effect.tapError(askAddress(1, client, policies), () =>
      giveBack(ofKey, keyId, policies),
    )
    return ofAddress.admitted
      ? outcomeOf(ofKey, ofAddress)
      : outcomeOf(yield* giveBack(ofKey, keyId, policies), ofAddress)
  })

  const takeOfKey = (
    client: Client,
    keyId: ApiKeyId,
    policies: Policies,
    retries: number,
  ): Effect.Effect<Take, StoreUnavailable> =>
    Effect.gen(function* () {
      const ofKey = yield* askKey(1, keyId, policies)
      if (ofKey.admitted) {
        return yield* holds.during(keyId, complete(ofKey, client, keyId, policies))
      }
      if (retries > 0 && (yield* holds.anyGivenBack(keyId))) {
        return yield* takeOfKey(client, keyId, policies, retries - 1)
      }
      return outcomeOf(ofKey, yield* askAddress(0, client, policies))
    })

  return (client, policies) =>
    client.keyId === undefined
      ? askAddress(1, client, policies)
      : Effect.uninterruptible(takeOfKey(client, client.keyId, policies, mostRetries))
}
