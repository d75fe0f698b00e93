/** Limits for a million clients hold and stay fast; the quick suite has few clients. */

import { expect, it } from "vitest"
import * as Setting from "../../src/base/setting.ts"
import { Micros, Millis } from "../../src/base/time.ts"
import { ApiKeyId } from "../../src/base/values.ts"
import { bucketPolicy, makeBucketTable } from "../../src/limits/buckets.ts"
import { makeEmptyBucketCache } from "../../src/limits/empty-buckets.ts"
import { makeSuspensions, suspensionOptions } from "../../src/limits/suspensions.ts"

const clients = 1_000_000

const client = (address: string) => ({ address, keyId: undefined })

it("a bucket table gives an exhausted client no tokens back under a flood of new ones", () => {
  const perMinute = bucketPolicy({ limit: 100, window: Millis(60_000) })
  const policies = { address: perMinute, key: perMinute, burst: perMinute }
  const start = 1_795_000_000_000_000
  const table = makeBucketTable(1000)
  const exhausted = client("exhausted")
  for (let take = 0; take < 100; take++) table.take(exhausted, policies, Micros(start))
  let admitted = 0
  for (let one = 0; one < clients; one++) {
    const now = Micros(start + one)
    table.take(client(`flood ${one}`), policies, now)
    if (one % 1000 === 0) admitted += table.take(exhausted, policies, now).admitted ? 1 : 0
  }
  // In the second since then, 1⅔ tokens came back.
  expect(admitted).toBe(1)
})

// If each insertion passed over the ids removed before it, this would take a minute.
it("the cache of empty buckets is as fast at its limit as below", () => {
  const perSecond = bucketPolicy({ limit: 1, window: Millis(1000) })
  const cache = makeEmptyBucketCache({ address: perSecond, key: perSecond, burst: perSecond })
  const now = Micros(10_000_000)
  const take = { admitted: false, now, address: Micros(11_000_000), key: now, burst: now }
  for (let one = 0; one < clients; one++) cache.record(client(`address ${one}`), take, now)
  expect(cache.find(client(`address ${clients - 1}`), now)).toBeDefined()
})

// If each new offender passed over all evicted ones, this would take a minute.
it("a suspension is found as fast for the millionth key as for the first", () => {
  const suspensions = makeSuspensions(Setting.parse(suspensionOptions, { refusals: 2 }))
  const now = Micros(0)
  for (let one = 0; one < clients; one++) suspensions.refuse(ApiKeyId(`key ${one}`), now)
  expect(suspensions.refuse(ApiKeyId(`key ${clients - 1}`), now)).toBeDefined()
})
