/** Takes of the tests, from buckets that hold a hundred tokens for a day. */

import {
  type BucketPolicies,
  type LimitedClient,
  Millis,
  RateLimitStore,
  type TakeResult,
  bucketPolicy,
} from "@tenure/core/store"
import * as Exit from "effect/Exit"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { expect } from "vitest"
import { redisLimits } from "../src/index.ts"
import type { Opened } from "./clients.ts"

const hundred = bucketPolicy({ limit: 100, window: Millis(86_400_000) })
const policies: BucketPolicies = { address: hundred, key: hundred, burst: hundred }

/** A store on a client. */
export const storeOn = ({ client }: Opened) => {
  const runtime = ManagedRuntime.make(redisLimits({ client }))
  const take = (of: LimitedClient) =>
    runtime.runPromiseExit(RateLimitStore.use((store) => store.take(of, policies)))
  return {
    take,
    takeMany: (count: number, of: LimitedClient) =>
      Promise.all(Array.from({ length: count }, () => take(of))),
    close: () => runtime.dispose(),
  }
}

export const admitted = (exits: ReadonlyArray<Exit.Exit<TakeResult, unknown>>): number =>
  exits.filter((exit) => Exit.isSuccess(exit) && exit.value.admitted).length

/** Takes until every take is refused, by a server that answers. Returns how many were admitted. */
export const exhaust = async (
  takeMany: () => Promise<ReadonlyArray<Exit.Exit<TakeResult, unknown>>>,
): Promise<number> => {
  let total = 0
  const isExhausted = async (): Promise<boolean> => {
    const takes = await takeMany()
    total += admitted(takes)
    return takes.every((exit) => Exit.isSuccess(exit) && !exit.value.admitted)
  }
  await expect.poll(isExhausted).toBe(true)
  return total
}
