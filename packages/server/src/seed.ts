/** Stores the projects, memberships and API keys in a seed file. */

import { readFile } from "node:fs/promises"
import { ApiKeyConflict } from "@tenure/core"
import { ApiKeys, Memberships } from "@tenure/core/effect"
import { Database } from "@tenure/postgres"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { reasonsOf } from "./log.ts"
import {
  SeedFile,
  type SeedKey,
  type SeedPart,
  type SeedPlan,
  type SeedSettings,
  locateInSeed,
  planSeed,
} from "./seed-plan.ts"
import { StartError, startErrorFromSchema } from "./start-error.ts"

/** Runs work in a transaction, if there is a database. Memory needs none, because it ends with the process. */
export const atomically = Effect.fnUntraced(function* <A, E, R>(work: Effect.Effect<A, E, R>) {
  const database = yield* Effect.serviceOption(Database)
  return yield* Option.isSome(database) ? database.value.atomically(work) : work
})

// A list of memberships takes this many.
const maxListed = 1000

const pagesOf = <A>(all: ReadonlyArray<A>, length: number): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(all.length / length) }, (_, index) =>
    all.slice(index * length, (index + 1) * length),
  )

/** Returns those memberships in a part that do not exist. */
const newIn = Effect.fnUntraced(function* ({ memberships, projectId }: SeedPart) {
  const service = yield* Memberships
  const userIds = memberships.map(({ userId }) => userId)
  const pages = yield* Effect.forEach(pagesOf(userIds, maxListed), (page) =>
    service.list({ projectId, userIds: page, limit: maxListed }),
  )
  const found = new Set<string>(pages.flat().map(({ userId }) => userId))
  return memberships.filter(({ userId }) => !found.has(userId))
})

/** Returns those projects with settings that do not exist. */
const newWithSettings = Effect.fnUntraced(function* (settings: SeedPlan["settings"]) {
  const service = yield* Memberships
  const pages = yield* Effect.forEach(pagesOf([...settings.keys()], maxListed), (page) =>
    service.listProjects({ within: new Set(page), limit: page.length }),
  )
  const found = new Set<string>(pages.flat().map(({ id }) => id))
  return [...settings].filter(([projectId]) => !found.has(projectId))
})

/** Creates a project with its settings, in one step: the next start leaves projects that exist as they are. */
const createWithSettings = ([projectId, settings]: readonly [string, SeedSettings]) =>
  Memberships.use((service) =>
    atomically(
      Effect.andThen(
        service.createProject(projectId),
        service.updateProject({ projectId, ...settings }),
      ),
    ),
  )

/** Creates projects, many in a statement. Returns the ids of those with memberships. */
const createAll = Effect.fnUntraced(function* (projectIds: ReadonlyArray<string>) {
  const service = yield* Memberships
  const pages = yield* Effect.forEach(pagesOf(projectIds, maxListed), (page) =>
    Effect.gen(function* () {
      yield* Effect.forEach(page, (projectId) => service.createProject(projectId), {
        concurrency: "unbounded",
        discard: true,
      })
      return yield* service.listProjects({ within: new Set(page), limit: page.length })
    }),
  )
  return new Set<string>(pages.flat().flatMap(({ id, memberships }) => (memberships > 0 ? id : [])))
})

/** Imports the memberships that do not exist. */
const importNew = Effect.fnUntraced(function* (part: SeedPart, filled: ReadonlySet<string>) {
  const { projectId } = part
  const memberships = filled.has(projectId) ? yield* newIn(part) : part.memberships
  if (memberships.length > 0) yield* (yield* Memberships).import({ projectId, memberships })
})

/** Tells whether a key must be issued, because it does not open all its projects. */
const isMissing = Effect.fnUntraced(function* ({ path, projects, role, token }: SeedKey) {
  const known = yield* (yield* ApiKeys).authenticate(token)
  if (known === undefined) return true
  if (known.role !== role)
    return yield* locateInSeed(path, new ApiKeyConflict({ keyId: known.id, role: known.role }))
  if (known.projects === "all") return false
  const opened: ReadonlySet<string> = known.projects
  return projects === "all" || [...projects].some((id) => !opened.has(id))
})

const issue = Effect.fnUntraced(function* (key: SeedKey) {
  const { path, projects, role, token } = key
  // The audit trail shows names.
  const { name = `seed ${role}` } = key
  yield* (yield* ApiKeys)
    .issue({ projects: projects === "all" ? projects : [...projects], role, token, name })
    .pipe(
      // A revoked key stays revoked.
      Effect.catchTag("ApiKeyRevoked", () => Effect.void),
      Effect.mapError((fault) => locateInSeed(path, fault)),
    )
})

const progressMillis = 1000

/** Makes an effect that logs the progress once a second, so not for a small seed. */
const progressOf = (total: number) => {
  let stored = 0
  let told = performance.now()
  return (count: number) =>
    Effect.suspend(() => {
      stored += count
      if (performance.now() - told < progressMillis) return Effect.void
      told = performance.now()
      return Effect.annotateLogs(Effect.logInfo("The seed file is being stored"), { stored, total })
    })
}

// A database server takes several changes at a time, and waits for the disk once for all.
const changesAtOnce = 8

const keysAtOnce = 100

/**
 * Stores a plan in many steps, so that none takes long. After an interrupted start, the next one skips all
 * entries that exist.
 */
const store = Effect.fnUntraced(function* (
  { batches, keys, settings }: SeedPlan,
  isServer: boolean,
) {
  const missing = yield* Effect.filter(keys, isMissing, { concurrency: "unbounded" })
  const parts = batches.flat()
  const tell = progressOf(
    parts.reduce((sum, { memberships }) => sum + memberships.length, missing.length),
  )
  const manner = { concurrency: isServer ? changesAtOnce : 1, discard: true } as const
  /** Runs steps at the same time on a server, and elsewhere in one transaction, to wait for the disk once. */
  const together = <Item, E, R>(
    items: ReadonlyArray<Item>,
    step: (item: Item) => Effect.Effect<void, E, R>,
  ) => {
    const all = Effect.forEach(items, step, manner)
    return isServer ? all : atomically(all)
  }
  yield* together(yield* newWithSettings(settings), createWithSettings)
  const filled = yield* createAll([...new Set(parts.map(({ projectId }) => projectId))])
  for (const batch of batches) {
    yield* together(batch, (part) => importNew(part, filled))
    yield* tell(batch.reduce((sum, { memberships }) => sum + memberships.length, 0))
  }
  for (const page of pagesOf(missing, keysAtOnce)) {
    yield* together(page, issue)
    yield* tell(page.length)
  }
})

/** Adds the variable's name to an error in the seed file. */
const blame = (fault: Error): StartError => {
  const message = Schema.isSchemaError(fault)
    ? startErrorFromSchema(fault).message
    : reasonsOf(fault)
  return new StartError({ message: `SEED_FILE: ${message}` })
}

/**
 * Stores the projects, memberships and API keys in a seed file, or none if one is invalid. Leaves existing
 * ones unchanged, so seeding twice has no further effect.
 *
 * @param isServer - whether the database takes several transactions at a time
 */
export const seedFromFile = Effect.fnUntraced(function* (path: string, isServer: boolean) {
  const text = yield* Effect.tryPromise({
    try: () => readFile(path, "utf8"),
    catch: (fault) => new StartError({ message: String(fault) }),
  })
  const seed = yield* Schema.decodeUnknownEffect(SeedFile)(text, { onExcessProperty: "error" })
  yield* store(yield* Effect.fromResult(planSeed(seed)), isServer)
}, Effect.mapError(blame))
