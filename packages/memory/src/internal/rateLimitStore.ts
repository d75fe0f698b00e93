/** Token buckets in memory. */

import * as BucketTable from "@tenure/core/BucketTable"
import type { RateLimitStore } from "@tenure/core/RateLimitStore"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** Makes the store. */
export const make = (maxBuckets: number): RateLimitStore["Service"] => {
  const table = BucketTable.make(maxBuckets)
  return {
    take: (client, policies) =>
      Effect.withFiberSucceed((fiber) => {
        const clock = fiber.getRef(Clock.Clock)
        return table.take(client, policies, clock.currentTimeMillisUnsafe() * 1000)
      }),
  }
}
