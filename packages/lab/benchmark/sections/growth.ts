/** The cost of an operation as the number of projects, memberships and webhooks grows. */

import { type Tenure, createTenure } from "@tenure/core"
import { bulkModes } from "@tenure/core/internal"
import { ApiKeyId } from "@tenure/core/store"
import { memory } from "@tenure/memory"
import { type Database, clients, fill, startTenure } from "../database.ts"
import type { Curve, Row, Section, Settings } from "../measurement.ts"
import { publications } from "../publications.ts"
import { type Contestant, type Score, loops, takeTurns } from "../rounds.ts"
import type { Target } from "../target.ts"

const endDate = "2099-01-01T00:00:00.000Z"

/** An instance of Tenure with this many projects, each with this many members. */
interface Filled {
  readonly tenure: Tenure
  readonly projects: number
  readonly members: number
  readonly close: () => Promise<void>
}

/** How many projects, and how many members each has. */
type Size = Pick<Filled, "projects" | "members">

/** A place to keep memberships in. */
interface Place {
  readonly name: string
  /** Extensions at the same time. */
  readonly concurrency: number
  readonly make: (size: Size) => Promise<Filled>
}

const projectOf = (index: number): string => `growth-${index}`

const inMemory: Place = {
  name: "in memory",
  concurrency: 1,
  make: async (size) => {
    const tenure = await createTenure({ stores: memory() })
    for (let project = 0; project < size.projects; project++) {
      const projectId = projectOf(project)
      await tenure.memberships.createProject(projectId)
      for (let user = 1; user <= size.members; user++) {
        await tenure.memberships.grant({ projectId, userId: String(user), endDate })
      }
    }
    return { ...size, tenure, close: () => tenure.close() }
  },
}

const onPostgres = (database: Database): Place => ({
  name: "on PostgreSQL",
  concurrency: clients,
  make: async (size) => {
    // A schema for each size, so that the tables have it too.
    const schema = `benchmark_${size.projects}_${size.members}`
    await database.sql(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
    const tenure = await startTenure(database.url, schema)
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

const below = (count: number): number => Math.floor(Math.random() * count)

const origin = {
  requestId: "b9019cc1-e966-4695-ad2c-6caf64a8431f",
  keyId: ApiKeyId("b9019cc1-e966-4695-ad2c-6caf64a8431f"),
}

/** What is done, and how. */
interface Operation {
  readonly name: string
  /** The target in a place and by a size, such as "in memory by memberships"; without one, the usual. */
  readonly targets?: Readonly<Record<string, Target>>
  /** Whether one is done after the other. */
  readonly isAlone?: true
  readonly perform: (filled: Filled) => Promise<unknown>
}

const extension: Operation = {
  name: "extension",
  targets: {
    "in memory by memberships": {
      of: "ratio",
      atMost: 1.2,
      profile:
        "Among a million members an extension takes 1.4 to 1.6 times as long as among a thousand. Finding a text that is new in a map of a million, which misses the caches of the processor, makes it 1.3 times by itself. Numbers in one array in place of an object for each member would save a third of the memory, but at most a tenth of the time.",
    },
  },
  perform: ({ members, projects, tenure }) => {
    const [projectId, userId] = [projectOf(below(projects)), String(1 + below(members))]
    return tenure.memberships.extend({ projectId, userId, endDate }, origin)
  },
}

const bulkExtensions: ReadonlyArray<Operation> = bulkModes.map((mode) => ({
  name: `bulk extension (${mode})`,
  perform: ({ projects, tenure }) =>
    tenure.memberships.extendAll({ projectId: projectOf(below(projects)), endDate, mode }, origin),
}))

const bulkByDuration: Operation = {
  name: "bulk extension (extendBy) and undoing it",
  isAlone: true,
  perform: async ({ projects, tenure }) => {
    const projectId = projectOf(below(projects))
    const idempotencyKey = crypto.randomUUID()
    await tenure.memberships.extendAll({ projectId, by: "PT1S", idempotencyKey }, origin)
    const [newest] = await tenure.memberships.bulkExtensions({ projectId, limit: 1 })
    if (newest === undefined) throw new Error("no bulk extension")
    await tenure.memberships.undoBulkExtension({ projectId, id: newest.id }, origin)
  },
}

const contestantOf = (operation: Operation, filled: Filled, concurrency: number): Contestant => ({
  name: "",
  run: (seconds) =>
    loops(operation.isAlone ? 1 : concurrency, seconds, () => operation.perform(filled)),
})

/** Something that grows: its name, and a contestant for each size. */
interface Growing {
  readonly measured: string
  readonly target?: Target | undefined
  readonly contestants: ReadonlyMap<number, Contestant>
}

const usualTarget: Target = { of: "ratio", atMost: 1.5 }

/** The dearest size beside the smallest, and the curve of all. */
const judge = (
  { contestants, measured, target = usualTarget }: Growing,
  scores: ReadonlyArray<Score>,
): { readonly row: Row; readonly curve: Curve } => {
  const points = [...contestants.keys()].map(
    (size, index) => [size, 1_000_000 / (scores[index]?.rate ?? NaN)] as const,
  )
  const [smallest = [0, NaN] as const, ...larger] = points
  const dearest = larger.reduce(
    (most, one) => (one[1] > most[1] ? one : most),
    larger[0] ?? smallest,
  )
  return {
    curve: { name: measured, points, target },
    row: {
      measured: `${measured}, dearest: ${dearest[0].toLocaleString("en")}`,
      unit: "µs",
      figure: dearest[1],
      yardstick: { name: `with ${smallest[0].toLocaleString("en")}`, figure: smallest[1] },
      target,
    },
  }
}

const measure = async (growing: Growing, settings: Settings) =>
  judge(growing, await takeTurns([...growing.contestants.values()], settings))

const growMemberships = async (
  operations: ReadonlyArray<Operation>,
  { concurrency, make, name }: Place,
  what: string,
  sizes: ReadonlyMap<number, Size>,
  settings: Settings,
) => {
  const filled = new Map<number, Filled>()
  for (const [count, size] of sizes) filled.set(count, await make(size))
  const found = []
  for (const operation of operations) {
    const contestants = new Map(
      Array.from(filled, ([count, one]) => [count, contestantOf(operation, one, concurrency)]),
    )
    const where = `${name} by ${what}`
    const target = operation.targets?.[where]
    const measured = `${operation.name} ${where}`
    found.push(await measure({ measured, contestants, target }, settings))
  }
  for (const { close } of filled.values()) await close()
  return found
}

const projectSizes = ({ pick }: Settings): ReadonlyMap<number, Size> => {
  const counts = pick([1, 10, 100, 1000], [1, 10])
  const members = pick(10_000, 100)
  return new Map(counts.map((projects) => [projects, { projects, members: members / projects }]))
}

const memberSizes = ({ isLarge, pick }: Settings): ReadonlyMap<number, Size> => {
  const counts = pick([1000, 10_000, 100_000, 1_000_000], [100, 1000])
  const all = isLarge ? [...counts, 10_000_000] : counts
  return new Map(all.map((members) => [members, { projects: 1, members }]))
}

const growPublications = async (database: Database | undefined, settings: Settings) => {
  const counts = settings.pick([10, 100, 1000], [10, 20])
  const measured = `publication ${database === undefined ? "in memory" : "on PostgreSQL"} by webhooks, a delivery`
  return publications(database, counts, settings.pick(20_000, 200), (contestants) =>
    measure({ measured, contestants }, settings),
  )
}

/** The cost of extensions, bulk extensions and publications as things grow. */
export const growth: Section = {
  name: "growth",
  measure: async (settings) => {
    const database = await settings.database()
    const found = []
    for (const place of [inMemory, onPostgres(database)]) {
      const [byProjects, byMembers] = [projectSizes(settings), memberSizes(settings)]
      found.push(
        ...(await growMemberships([extension], place, "projects", byProjects, settings)),
        ...(await growMemberships(
          [extension, ...bulkExtensions, bulkByDuration],
          place,
          "memberships",
          byMembers,
          settings,
        )),
      )
    }
    found.push(await growPublications(undefined, settings))
    found.push(await growPublications(database, settings))
    return { rows: found.map(({ row }) => row), curves: found.map(({ curve }) => curve) }
  },
}
