/** Takes tokens from buckets in Redis, as far as it answers. */

import type { Policies, Take } from "@tenure/core/RateLimitStore"
import type { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as TokenBucket from "@tenure/core/TokenBucket"
import { Millis } from "@tenure/core/Units"
import * as Effect from "effect/Effect"
import type { Redis } from "./Client.ts"
import type { Settle } from "./Guard.ts"
import * as Guards from "./Guards.ts"
import * as Script from "./Script.ts"
import { type Part, take, takeArgs, takesOf, type Tokens } from "./take.lua.ts"

/** The buckets. */
export interface Buckets {
  /**
   * Takes tokens for each client in turn. In a cluster, all keys have to be in the same slot.
   *
   * @param part - which buckets each client has; the outcome tells of the others that they are full
   * @param keys - the names of the keys of the first client, of its address first, then of the second…
   * @param settle - is told the outcome of each client. With a fiber instead, a take that is alone would
   * cost a twentieth more
   */
  readonly take: (
    tokens: Tokens,
    part: Part,
    keys: ReadonlyArray<string>,
    policies: Policies,
    settle: Settle<ReadonlyArray<Take>>,
  ) => void
  /** Takes tokens for one client, which has one key. */
  readonly takeOne: (
    tokens: Tokens,
    part: Exclude<Part, "both">,
    key: string,
    policies: Policies,
  ) => Effect.Effect<Take, StoreUnavailable>
  /** From now on, every call fails. */
  readonly close: () => void
}

// Looking brings back what lies too far ahead for the policy, so this one, of 30 years, has nothing brought back.
const anyPolicy = TokenBucket.policy({ limit: 1, window: Millis(30 * 365 * 86_400_000) })
const anyPolicies = { address: anyPolicy, key: anyPolicy, burst: anyPolicy }

const only = ([taken]: ReadonlyArray<Take>): Effect.Effect<Take> =>
  taken === undefined ? Effect.die("a script has no outcome") : Effect.succeed(taken)

/** Makes the buckets. `timeoutMillis` is the longest that a call waits. */
export const make = (redis: Redis, timeoutMillis: number): Buckets => {
  const script = Script.make(redis, take)
  const look = (name: string) => script([name], takeArgs(0, "address", anyPolicies))
  const partOf = redis.isCluster ? Guards.ofCluster : Guards.ofServer
  const guards = Guards.make(partOf, look, timeoutMillis)

  const buckets: Buckets = {
    take: (tokens, part, keys, policies, settle) => {
      const [first = ""] = keys
      const args = takeArgs(tokens, part, policies)
      const run = async () => takesOf(await script(keys, args), part, keys.length)
      guards.of(first).ask(run, settle)
    },
    takeOne: (tokens, part, key, policies) =>
      Effect.callback((resume) =>
        buckets.take(tokens, part, [key], policies, (taken) => resume(Effect.flatMap(taken, only))),
      ),
    close: guards.close,
  }
  return buckets
}
