/** What operations cost as projects, memberships and webhooks grow. */

import { type Tenure, createTenure } from "@tenure/core"
import { bulkModes } from "@tenure/core/internal"
import { ApiKeyId } from "@tenure/core/store"
import { memory } from "@tenure/memory"
import { type Database, anyOf, clients, endDate, fill, inWords, startTenure } from "../database.ts"
import type { Row, Section, Settings, Target } from "../measurement.ts"
import { type Contestant, loops, sample, takeTurns } from "../rounds.ts"

/** How many projects, and how many members each has. */
interface Size {
  readonly projects: number
  readonly members: number
}

/** A Tenure with that. */
interface Filled extends Size {
  readonly tenure: Tenure
  readonly close: () => Promise<unknown>
}

/** A place to keep memberships in. */
interface Place {
  readonly name: string
  /** Operations at the same time. */
  readonly concurrency: number
  readonly make: (size: Size) => Promise<Filled>
}

const projectOf = (index: number): string => `growth-${index}`

const inMemory: Place = {
  name: "in memory",
  concurrency: 1,
  make: async (size) => {
    // Webhooks are there to have deliveries, which nobody makes.
    const tenure = await createTenure({ stores: memory(), webhooks: { dispatch: false } })
    for (let project = 0; project < size.projects; project++) {
      const projectId = projectOf(project)
      await tenure.memberships.createProject(projectId)
      for (let user = 1; user <= size.members; user++) {
        await tenure.memberships.grant({ projectId, userId: String(user), endDate })
      }
    }
    return { ...size, tenure, close: tenure.close }
  },
}

const onPostgres = (database: Database): Place => ({
  name: "on PostgreSQL",
  concurrency: clients,
  make: async (size) => {
    // A schema for each size, so that the tables have it too.
    const schema = `benchmark_${size.projects}_${size.members}`
    await database.sql(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
    const tenure = await startTenure(database.url, schema, { webhooks: { dispatch: false } })
    for (let project = 0; project < size.projects; project++) {
      await fill(database, tenure, projectOf(project), size.members, schema)
    }
    const close = async () => {
      await tenure.close()
      await database.sql(`DROP SCHEMA ${schema} CASCADE`)
    }
    return { ...size, tenure, close }
  },
})

const origin = {
  requestId: "b9019cc1-e966-4695-ad2c-6caf64a8431f",
  keyId: ApiKeyId("b9019cc1-e966-4695-ad2c-6caf64a8431f"),
}

/** What is done, and how. */
interface Operation {
  readonly name: string
  /** Whether one is done after the other. */
  readonly isAlone?: true
  readonly perform: (filled: Filled, projectId: string) => Promise<unknown>
}

const extension: Operation = {
  name: "extension",
  perform: ({ members, tenure }, projectId) =>
    tenure.memberships.extend({ projectId, userId: anyOf(members), endDate }, origin),
}

const bulkExtensions: ReadonlyArray<Operation> = bulkModes.map((mode) => ({
  name: `bulk extension (${mode})`,
  perform: ({ tenure }, projectId) =>
    tenure.memberships.extendAll({ projectId, endDate, mode }, origin),
}))

const bulkByDuration: Operation = {
  name: "bulk extension (extendBy) and undoing it",
  isAlone: true,
  perform: async ({ tenure: { memberships } }, projectId) => {
    const idempotencyKey = crypto.randomUUID()
    await memberships.extendAll({ projectId, by: "PT1S", idempotencyKey }, origin)
    const [newest] = await memberships.bulkExtensions({ projectId, limit: 1 })
    if (newest === undefined) throw new Error("no bulk extension")
    await memberships.undoBulkExtension({ projectId, id: newest.id }, origin)
  },
}

const usualTarget: Target = { of: "ratio", atMost: 1.5 }

const targets: Readonly<Record<string, Target>> = {
  "extension in memory by memberships": {
    of: "ratio",
    atMost: 1.2,
    profile:
      "Among a million members an extension takes 1.4 to 1.6 times as long as among a thousand. Finding a text that is new in a map of a million, which misses the caches of the processor, makes it 1.3 times by itself. Numbers in one array in place of an object for each member would save a third of the memory, but at most a tenth of the time.",
  },
}

/** Has all sizes take turns. Returns the dearest beside the smallest. */
const measure = async (
  measured: string,
  contestants: ReadonlyMap<number, Contestant>,
  settings: Settings,
): Promise<Row> => {
  const scores = await takeTurns([...contestants.values()], settings)
  const costs = [...contestants.keys()].map((size, index) => ({
    size,
    micros: 1_000_000 / (scores[index]?.rate ?? NaN),
  }))
  const [smallest = { size: 0, micros: NaN }, ...larger] = costs
  const [dearest = smallest] = larger.toSorted((one, other) => other.micros - one.micros)
  return {
    measured: `${measured}, dearest: ${inWords(dearest.size)}`,
    unit: "µs",
    figure: dearest.micros,
    yardstick: { name: `with ${inWords(smallest.size)}`, figure: smallest.micros },
    target: targets[measured] ?? usualTarget,
  }
}

/** Makes an instance for each size, and measures operations on all. */
const grow = async (
  operations: ReadonlyArray<Operation>,
  { concurrency, make, name }: Place,
  what: string,
  sizes: ReadonlyArray<readonly [count: number, size: Size]>,
  settings: Settings,
): Promise<ReadonlyArray<Row>> => {
  const filled = new Map<number, Filled>()
  for (const [count, size] of sizes) filled.set(count, await make(size))
  const rows: Array<Row> = []
  for (const { isAlone, name: operation, perform } of operations) {
    const contestantOf = (one: Filled): Contestant => ({
      name: "",
      run: (seconds) =>
        loops(isAlone ? 1 : concurrency, seconds, () =>
          perform(one, projectOf(Math.floor(Math.random() * one.projects))),
        ),
    })
    const contestants = new Map(Array.from(filled, ([count, one]) => [count, contestantOf(one)]))
    rows.push(await measure(`${operation} ${name} by ${what}`, contestants, settings))
  }
  for (const { close } of filled.values()) await close()
  return rows
}

/** Publishes events, one after the other, to projects with more and more webhooks. Counts deliveries, which are all kept. */
const publish = async ({ make, name }: Place, settings: Settings): Promise<Row> => {
  const counts = settings.pick([10, 100, 1000], [10, 20])
  const deliveries = settings.pick(20_000, 200)
  const { close, tenure } = await make({ projects: counts.length, members: 1 })
  const contestants = new Map<number, Contestant>()
  for (const [index, webhooks] of counts.entries()) {
    const projectId = projectOf(index)
    for (let count = 0; count < webhooks; count++) {
      await tenure.webhooks.create({ projectId, url: `https://receiver.invalid/${count}` })
    }
    const events = Math.ceil(deliveries / webhooks)
    const run = () =>
      sample(async () => {
        for (let sent = 0; sent < events; sent++) {
          await tenure.events.publish({ projectId, type: "benchmark", data: {} })
        }
        return events * webhooks
      })
    contestants.set(webhooks, { name: "", run })
  }
  const row = await measure(`publication ${name} by webhooks, a delivery`, contestants, settings)
  await close()
  return row
}

export const growth: Section = {
  name: "growth",
  measure: async (settings) => {
    const { isLarge, pick } = settings
    const database = await settings.database()
    const rows: Array<Row> = []
    const members = pick(10_000, 100)
    const projectSizes = pick([1, 10, 100, 1000], [1, 10]).map(
      (projects) => [projects, { projects, members: members / projects }] as const,
    )
    const memberSizes = [
      ...pick([1000, 10_000, 100_000, 1_000_000], [100, 1000]),
      ...(isLarge ? [10_000_000] : []),
    ].map((size) => [size, { projects: 1, members: size }] as const)
    const all = [extension, ...bulkExtensions, bulkByDuration]
    const places = [inMemory, onPostgres(database)]
    for (const place of places) {
      rows.push(...(await grow([extension], place, "projects", projectSizes, settings)))
      rows.push(...(await grow(all, place, "memberships", memberSizes, settings)))
    }
    for (const place of places) rows.push(await publish(place, settings))
    return { rows }
  },
}
