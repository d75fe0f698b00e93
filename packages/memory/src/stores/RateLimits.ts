/** Token buckets in memory. */

import * as BucketTable from "@tenure/core/BucketTable"
import * as Moment from "@tenure/core/Moment"
import type { RateLimitStore } from "@tenure/core/RateLimitStore"
import { toMicros } from "@tenure/core/Units"
import * as Effect from "effect/Effect"

/** Makes the store. */
export const make = (maxBuckets: number): RateLimitStore["Service"] => {
  const table = BucketTable.make(maxBuckets)
  return {
    ping: Effect.void,
    take: (client, policies) =>
      Moment.nowWith(({ tick }) => Effect.succeed(table.take(client, policies, toMicros(tick)))),
  }
}
