/** Token buckets on PostgreSQL. */

import type { Client, Policies, RateLimitStore, Take } from "@tenure/core/RateLimitStore"
import type { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import { Micros } from "@tenure/core/Units"
import * as Effect from "effect/Effect"
import type { Executor, Manner } from "../connection/Executor.ts"
import { regularly } from "../connection/housekeeping.ts"
import { sweep } from "./sweep.sql.ts"
import { type Bucket, take, takeParams, type TakeRow } from "./take.sql.ts"

// A request does not wait for locks of buckets: it is limited without the store.
const manner: Manner = { owner: "limits", isBrief: true }

type Resume = (take: Effect.Effect<Take, StoreUnavailable>) => void

/** The takes that wait while a statement for the same buckets is in flight. */
interface Line {
  waiting: Array<Resume>
}

/** The buckets of a client: the one of its address, and the two of its key if it has one. */
const bucketsOf = ({ address, keyId }: Client, policies: Policies): ReadonlyArray<Bucket> => {
  const ofAddress = { key: `address:${address}`, policy: policies.address }
  if (keyId === undefined) return [ofAddress]
  const ofKey = { key: `key:${keyId}`, policy: policies.key }
  return [ofAddress, ofKey, { key: `burst:${keyId}`, policy: policies.burst }]
}

/** The outcomes of `count` takes that shared a statement. As many are admitted as tokens were taken. */
const outcomesOf = (
  buckets: ReadonlyArray<Bucket>,
  rows: ReadonlyArray<TakeRow>,
  count: number,
): ReadonlyArray<Take> => {
  const taken = Number(rows[0]?.taken ?? 0)
  const now = Micros(Number(rows[0]?.now ?? 0))
  return Array.from({ length: count }, (_, index) => {
    const spent = Math.min(index + 1, taken)
    const [address = now, key = now, burst = now] = buckets.map(({ policy }, bucket) =>
      Micros(Number(rows[bucket]?.tat ?? now) + spent * policy.increment),
    )
    return { admitted: index < taken, now, address, key, burst }
  })
}

const outcomeAt = (takes: ReadonlyArray<Take>, index: number): Effect.Effect<Take> => {
  const outcome = takes[index]
  return outcome === undefined ? Effect.die("a take has no outcome") : Effect.succeed(outcome)
}

/**
 * Makes the store. Takes from the same buckets that arrive while a statement is in flight share the
 * next one.
 */
export const make = Effect.fnUntraced(function* (executor: Executor) {
  const { schema } = executor
  const fork = Effect.runForkWith(yield* Effect.context())
  const statements = new Map<number, string>()
  const lines = new Map<string, Line>()

  const statementFor = (count: number): string => {
    const statement = statements.get(count) ?? take(schema, count)
    statements.set(count, statement)
    return statement
  }

  const takeMany = (buckets: ReadonlyArray<Bucket>, count: number) =>
    Effect.map(
      executor.executeApart<TakeRow>(
        statementFor(buckets.length),
        takeParams(buckets, count),
        manner,
      ),
      (rows) => outcomesOf(buckets, rows, count),
    )

  /** Serves the takes of a line until none is waiting. */
  const serve = (name: string, line: Line, buckets: ReadonlyArray<Bucket>): void => {
    const served = line.waiting
    line.waiting = []
    if (served.length === 0) return void lines.delete(name)
    fork(takeMany(buckets, served.length)).addObserver((exit) => {
      for (const [index, resume] of served.entries()) {
        resume(Effect.flatMap(exit, (takes) => outcomeAt(takes, index)))
      }
      serve(name, line, buckets)
    })
  }

  yield* regularly("1 minute", executor.executeApart(sweep(schema), []))

  const store: RateLimitStore["Service"] = {
    ping: executor.ping,

    take: (client, policies) =>
      Effect.callback((resume) => {
        const buckets = bucketsOf(client, policies)
        const name = buckets.map(({ key }) => key).join("\n")
        const line = lines.get(name)
        if (line !== undefined) return void line.waiting.push(resume)
        const added = { waiting: [resume] }
        lines.set(name, added)
        serve(name, added, buckets)
      }),
  }
  return store
})
