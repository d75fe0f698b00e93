/** Token buckets on PostgreSQL. */

import type { Client, Policies, RateLimitStore, Take } from "@tenure/core/RateLimitStore"
import type { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as TokenBucket from "@tenure/core/TokenBucket"
import * as Effect from "effect/Effect"
import { sweep, take } from "../statements/take.ts"
import type { Database } from "./database.ts"
import { regularly } from "./housekeeping.ts"
import { bigint, text } from "./parameters.ts"

interface TakeRow {
  readonly tat: bigint
  readonly now: bigint
  readonly taken: bigint
}

type Resume = (take: Effect.Effect<Take, StoreUnavailable>) => void

/** Takes on the same buckets that wait for one that is under way. */
interface Line {
  waiting: Array<Resume>
}

/** A bucket, and its key in the table. */
interface Bucket {
  readonly key: string
  readonly policy: TokenBucket.Policy
}

/** The buckets of a client: the address's, then the key's, if there is one. */
const bucketsOf = ({ address, keyId }: Client, policies: Policies): ReadonlyArray<Bucket> => {
  const ofAddress = { key: `address:${address}`, policy: policies.address }
  if (keyId === undefined) return [ofAddress]
  const ofKey = { key: `key:${keyId}`, policy: policies.key }
  return [ofAddress, ofKey, { key: `burst:${keyId}`, policy: policies.burst }]
}

/** The outcomes of so many takes at the same time, of which the first few are admitted. */
const outcomesOf = (
  buckets: ReadonlyArray<Bucket>,
  rows: ReadonlyArray<TakeRow>,
  count: number,
): ReadonlyArray<Take> => {
  const taken = Number(rows[0]?.taken ?? 0)
  const now = Number(rows[0]?.now ?? 0)
  return Array.from({ length: count }, (_, index) => {
    const spent = Math.min(index + 1, taken)
    const [address = now, key = now, burst = now] = buckets.map(
      ({ policy }, bucket) => Number(rows[bucket]?.tat ?? now) + spent * policy.increment,
    )
    return { admitted: index < taken, now, address, key, burst }
  })
}

const takeOf = (takes: ReadonlyArray<Take>, index: number): Effect.Effect<Take> => {
  const one = takes[index]
  return one === undefined ? Effect.die("a take was lost") : Effect.succeed(one)
}

/** Makes the store. Takes on the same buckets that arrive while one is under way go together. */
export const make = Effect.fnUntraced(function* (database: Database) {
  const { schema } = database
  const fork = Effect.runForkWith(yield* Effect.context())
  const statements = new Map<number, string>()
  const lines = new Map<string, Line>()

  const statementFor = (count: number): string => {
    const known = statements.get(count) ?? take(schema, count)
    statements.set(count, known)
    return known
  }

  const takeMany = (buckets: ReadonlyArray<Bucket>, count: number) =>
    Effect.map(
      database.query<TakeRow>(statementFor(buckets.length), [
        bigint(count),
        ...buckets.flatMap(({ key, policy }) => [
          text(key),
          bigint(policy.increment),
          bigint(TokenBucket.span(policy)),
        ]),
      ]),
      (rows) => outcomesOf(buckets, rows, count),
    )

  /** Serves all that wait in a line, until nobody does. */
  const serve = (name: string, line: Line, buckets: ReadonlyArray<Bucket>): void => {
    const served = line.waiting
    line.waiting = []
    if (served.length === 0) return void lines.delete(name)
    fork(takeMany(buckets, served.length)).addObserver((exit) => {
      for (const [index, resume] of served.entries()) {
        resume(Effect.flatMap(exit, (takes) => takeOf(takes, index)))
      }
      serve(name, line, buckets)
    })
  }

  yield* regularly("1 minute", database.query(sweep(schema), []))

  const store: RateLimitStore["Service"] = {
    take: (client, policies) =>
      Effect.callback((resume) => {
        const buckets = bucketsOf(client, policies)
        const name = buckets.map(({ key }) => key).join("\n")
        const line = lines.get(name)
        if (line !== undefined) return void line.waiting.push(resume)
        const fresh = { waiting: [resume] }
        lines.set(name, fresh)
        serve(name, fresh, buckets)
      }),
  }
  return store
})
