/** Takes tokens from buckets in Redis, as far as it answers. */

import type { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as TokenBucket from "@tenure/core/TokenBucket"
import { Millis } from "@tenure/core/Units"
import type * as Effect from "effect/Effect"
import type { Redis } from "./Client.ts"
import * as Guards from "./Guards.ts"
import * as Script from "./Script.ts"
import { take, type Taken, takeArgs, takenOf, type Tokens } from "./take.lua.ts"

/** The buckets. */
export interface Buckets {
  /**
   * Takes tokens for each client in turn. In a cluster, all keys have to be in the same slot.
   *
   * @param clients - the names of the keys of each client, the same number for each
   * @param policies - the policies of the buckets of each key of a client
   */
  readonly take: (
    tokens: Tokens,
    clients: ReadonlyArray<ReadonlyArray<string>>,
    policies: ReadonlyArray<ReadonlyArray<TokenBucket.Policy>>,
  ) => Effect.Effect<ReadonlyArray<Taken>, StoreUnavailable>
  /** From now on, every call fails. */
  readonly close: () => void
}

// Looking changes nothing, whatever the policy.
const anyPolicy = TokenBucket.policy({ limit: 1, window: Millis(1000) })

/** Makes the buckets. `timeoutMillis` is the longest that a call waits. */
export const make = (redis: Redis, timeoutMillis: number): Buckets => {
  const script = Script.make(redis, take)
  const look = (name: string) => script([name], takeArgs(0, [[anyPolicy]]))
  const partOf = redis.isCluster ? Guards.ofCluster : Guards.ofServer
  const guards = Guards.make(partOf, look, timeoutMillis)

  return {
    take: (tokens, clients, policies) => {
      const names = clients.flat()
      const [name = ""] = names
      const args = takeArgs(tokens, policies)
      return guards.of(name).ask(async () => takenOf(await script(names, args), clients.length))
    },
    close: guards.close,
  }
}
