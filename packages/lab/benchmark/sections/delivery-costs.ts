/**
 * The processor time that claims and settlements take, one after the other, while nobody else uses the database.
 * A machine that does something else as well changes it little.
 */

import { type Claim, Outbox } from "@tenure/core/store"
import { postgres } from "@tenure/postgres"
import * as Effect from "effect/Effect"
import { fillBacklog } from "../backlog.ts"
import { type Database, cpuOf, inWords, startTenure } from "../database.ts"
import type { Row, Section } from "../measurement.ts"
import { median } from "../rounds.ts"

const schema = "benchmark_costs"

/** How many webhooks have something to deliver. */
const webhookCounts = [20, 1000] as const

/** How many deliveries a claim takes, and a settlement. */
const sizes = [16, 128] as const

type Cost = "claim" | "settlement"

/** Which costs are shown: others add nothing. */
const shown = [
  ["claim", 16, 20],
  ["claim", 128, 20],
  ["claim", 16, 1000],
  ["settlement", 16, 20],
  ["settlement", 128, 20],
] as const satisfies ReadonlyArray<readonly [Cost, number, number]>

const sum = (numbers: ReadonlyArray<number>): number =>
  numbers.reduce((total, one) => total + one, 0)

/** Projects with a webhook each. */
const register = async (url: string, webhooks: number): Promise<ReadonlyArray<string>> => {
  const tenure = await startTenure(url, schema)
  const projectIds = Array.from({ length: webhooks }, (_, index) => `costs-${webhooks}-${index}`)
  for (const projectId of projectIds) {
    await tenure.memberships.createProject(projectId)
    await tenure.webhooks.create({ projectId, url: "https://receiver.invalid/" })
  }
  await tenure.close()
  return projectIds
}

// As a dispatcher has them while it is busy: most webhooks have all that they may have.
const maxInFlight = 768
const perWebhook = (webhooks: number): number =>
  Math.min(16, Math.ceil((maxInFlight + 1) / webhooks))

const claimWith =
  (outbox: Outbox["Service"], webhooks: number) =>
  (limit: number): Effect.Effect<ReadonlyArray<Claim>> => {
    const most = perWebhook(webhooks)
    const budget = { failing: 512, perWebhook: { least: most, most }, perProject: 128 }
    const claim = outbox.claim({ limit, ...budget, ahead: new Map(), leaseMillis: 60_000 })
    return Effect.orDie(Effect.map(claim, ({ claims }) => claims))
  }

const result = { _tag: "Answered", status: 204, body: "" } as const

const settle = (outbox: Outbox["Service"], claims: ReadonlyArray<Claim>) => {
  const attempt = { at: Date.now(), durationMillis: 5, result }
  return Effect.forEach(claims, (claim) => outbox.settle(claim, { _tag: "Delivered", attempt }), {
    concurrency: "unbounded",
    discard: true,
  }).pipe(Effect.orDie)
}

/** Removes some items, wherever they are. */
const takeSome = <A>(items: Array<A>, count: number): ReadonlyArray<A> =>
  Array.from({ length: count }, () =>
    items.splice(Math.floor(Math.random() * items.length), 1),
  ).flat()

type Samples = Readonly<Record<Cost, Array<number>>>

/** Claims and settles in turns, so that as many stay claimed. */
const measure = Effect.fnUntraced(function* (
  { sql }: Database,
  webhooks: number,
  { rounds, warmUp }: { readonly rounds: number; readonly warmUp: number },
) {
  const outbox = yield* Outbox
  const claim = claimWith(outbox, webhooks)
  const held: Array<Claim> = []
  const target = Math.min(maxInFlight, perWebhook(webhooks) * webhooks)
  while (held.length < target) {
    const claimed = yield* claim(Math.min(256, target - held.length))
    if (claimed.length === 0) break
    held.push(...claimed)
  }
  const bySize = new Map<number, Samples>(
    sizes.map((size) => [size, { claim: [], settlement: [] }]),
  )
  for (let round = -warmUp; round < rounds; round++) {
    const pids = yield* Effect.promise(() =>
      sql<{ pid: number }>("SELECT pid FROM pg_stat_activity"),
    )
    const inDatabase = Effect.promise(async () =>
      sum(await Promise.all(pids.map(({ pid }) => cpuOf(pid)))),
    )
    for (const [size, samples] of bySize) {
      const before = yield* inDatabase
      yield* settle(outbox, takeSome(held, size))
      const between = yield* inDatabase
      held.push(...(yield* claim(size)))
      const after = yield* inDatabase
      if (round < 0) continue
      samples.settlement.push(between - before)
      samples.claim.push(after - between)
    }
  }
  return bySize
})

/** What claims and settlements cost. */
export const deliveryCosts: Section = {
  name: "delivery-costs",
  measure: async (settings) => {
    const database = await settings.database()
    const { sql, url } = database
    const [rounds, warmUp] = settings.pick([40, 10], [1, 1])
    const found = new Map<number, ReadonlyMap<number, Samples>>()
    for (const webhooks of webhookCounts) {
      await sql(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
      const projectIds = await register(url, webhooks)
      const needed = 2 * maxInFlight + (rounds + warmUp) * sum(sizes)
      await fillBacklog({ url, schema }, projectIds, needed)
      const bySize = await measure(database, webhooks, { rounds, warmUp }).pipe(
        Effect.provide(postgres({ url, schema })),
        Effect.runPromise,
      )
      found.set(webhooks, bySize)
    }
    await sql(`DROP SCHEMA ${schema} CASCADE`)
    return {
      rows: shown.map(([cost, size, webhooks]): Row => ({
        measured: `processor time in PostgreSQL of a ${cost}, ${size} deliveries for ${inWords(webhooks)} webhooks`,
        unit: "µs CPU",
        figure: median(found.get(webhooks)?.get(size)?.[cost] ?? []),
      })),
    }
  },
}
