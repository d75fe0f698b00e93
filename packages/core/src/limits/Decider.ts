/** Decides on requests by what this process knows: suspended keys and empty buckets. */

import type { Moment } from "../base/Moment.ts"
import { toMicros } from "../base/Units.ts"
import * as Decision from "./Decision.ts"
import type { Client, Policies, Take } from "./RateLimitStore.ts"
import type { Refusal } from "./RefusalCache.ts"
import * as RefusalCache from "./RefusalCache.ts"
import type { Suspensions } from "./Suspension.ts"

/** Decides on requests. */
export interface Decider {
  /** Refuses a request before the store is asked, if the key is suspended or a bucket is empty. */
  readonly before: (client: Client, now: Moment) => Decision.Decision | undefined
  /** Returns the refusal of an address whose bucket is empty, and counts nothing. */
  readonly ofAddress: (address: string, now: Moment) => Decision.Decision | undefined
  /** Decides on a request by the store's answer. */
  readonly after: (client: Client, take: Take, now: Moment) => Decision.Decision
}

/** Makes a decider that knows of no suspended key and no empty bucket. */
export const make = (policies: Policies, suspensions: Suspensions): Decider => {
  const refusals = RefusalCache.make(policies)

  /**
   * Refuses a request. That counts against the key, which may suspend it, if one of its own buckets is
   * empty: others may have emptied that of the address.
   */
  const refuse = ({ keyId }: Client, refusal: Refusal, now: Moment): Decision.Decision => {
    const until =
      keyId !== undefined && refusal.isByKey
        ? suspensions.refuse(keyId, toMicros(now.tick))
        : undefined
    return until === undefined
      ? Decision.refused(refusal.name, refusal, now)
      : Decision.suspended(policies, until, now)
  }

  return {
    before: (client, now) => {
      const { keyId } = client
      const tick = toMicros(now.tick)
      const until = keyId === undefined ? undefined : suspensions.until(keyId, tick)
      if (until !== undefined) return Decision.suspended(policies, until, now)
      const refusal = refusals.find(client, tick)
      return refusal === undefined ? undefined : refuse(client, refusal, now)
    },
    ofAddress: (address, now) => {
      const refusal = refusals.findAddress(address, toMicros(now.tick))
      return refusal === undefined ? undefined : Decision.refused(refusal.name, refusal, now)
    },
    after: (client, take, now) => {
      const refusal = refusals.record(client, take, toMicros(now.tick))
      return take.admitted || refusal === undefined
        ? Decision.admitted(policies, client, take, now)
        : refuse(client, refusal, now)
    },
  }
}
