/** The data that the server starts with: that of a seed file, or a demo project. */

import { readFile } from "node:fs/promises"
import { ApiKeys } from "@tenure/core/ApiKeys"
import { Memberships } from "@tenure/core/Memberships"
import { roles } from "@tenure/core/Role"
import { Database } from "@tenure/postgres"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { reasonsOf } from "./reasons.ts"
import { fromSchema, StartError } from "./StartError.ts"

const KeyWithRole = Schema.Struct({ token: Schema.String, role: Schema.Literals(roles) })

const Member = Schema.Struct({ user_id: Schema.String, end_date: Schema.String })

const Project = Schema.Struct({
  id: Schema.String,
  memberships: Schema.optionalKey(Schema.Array(Member)),
  api_keys: Schema.optionalKey(Schema.Array(Schema.Union([Schema.String, KeyWithRole]))),
})

const Seed = Schema.fromJsonString(
  Schema.Struct({
    projects: Schema.Array(Project),
    /** The keys that open all projects. */
    api_keys: Schema.optionalKey(Schema.Array(KeyWithRole)),
  }),
)

type Key = NonNullable<(typeof Project.Type)["api_keys"]>[number]

/** Names the entry of the seed file that an error is about. */
const at =
  (...path: ReadonlyArray<string | number>) =>
  <A, R>(step: Effect.Effect<A, Error, R>): Effect.Effect<A, StartError, R> =>
    Effect.mapError(
      step,
      (fault) => new StartError({ message: [...path, reasonsOf(fault)].join(": ") }),
    )

/** Runs each step of a list, with the name of its entry. */
const each = <Item, R>(
  items: ReadonlyArray<Item> = [],
  path: ReadonlyArray<string | number>,
  step: (item: Item, index: number) => Effect.Effect<unknown, Error, R>,
) =>
  Effect.forEach(items, (item, index) => at(...path, index)(step(item, index)), { discard: true })

const issue = Effect.fnUntraced(function* (projects: "all" | ReadonlyArray<string>, key: Key) {
  const apiKeys = yield* ApiKeys
  const { role, token } = typeof key === "string" ? { role: "client" as const, token: key } : key
  // A key that has been revoked stays revoked.
  yield* Effect.catchTag(
    apiKeys.issue({ projects, role, token }),
    "ApiKeyRevoked",
    () => Effect.void,
  )
})

const repeatedUser = new StartError({ message: "user_id: the user has an entry before" })

const grant = Effect.fnUntraced(function* (projectId: string, given: typeof Member.Type) {
  const memberships = yield* Memberships
  const member = { projectId, userId: given.user_id }
  yield* Effect.catchTag(memberships.find(member), "MembershipNotFound", () =>
    memberships.grant({ ...member, endDate: given.end_date }),
  )
})

const create = Effect.fnUntraced(function* (project: typeof Project.Type) {
  yield* (yield* Memberships).createProject(project.id)
  const seen = new Set<string>()
  yield* each(project.memberships, ["memberships"], (member) => {
    if (seen.has(member.user_id)) return Effect.fail(repeatedUser)
    seen.add(member.user_id)
    return grant(project.id, member)
  })
  yield* each(project.api_keys, ["api_keys"], (key) => issue([project.id], key))
})

const apply = Effect.fnUntraced(function* (seed: typeof Seed.Type) {
  yield* each(seed.projects, ["projects"], create)
  yield* each(seed.api_keys, ["api_keys"], (key) => issue("all", key))
})

/** Runs work as a whole or not at all, if there is a database: what is in memory ends with the process. */
const atomically = Effect.fnUntraced(function* <A, E, R>(work: Effect.Effect<A, E, R>) {
  const database = yield* Effect.serviceOption(Database)
  return yield* Option.isSome(database) ? database.value.atomically(work) : work
})

/** Adds the name of the setting to an error in the seed file. */
const blame = (fault: Error): StartError => {
  const message = Schema.isSchemaError(fault) ? fromSchema(fault).message : reasonsOf(fault)
  return new StartError({ message: `SEED_FILE: ${message}` })
}

/**
 * Creates the projects, memberships and API keys of a seed file: all of them or, if one is invalid,
 * none. Leaves existing ones unchanged, so seeding twice has no further effect.
 */
export const fromFile = Effect.fnUntraced(function* (path: string) {
  const text = yield* Effect.tryPromise({
    try: () => readFile(path, "utf8"),
    catch: (fault) => new StartError({ message: String(fault) }),
  })
  const seed = yield* Schema.decodeUnknownEffect(Seed)(text, { onExcessProperty: "error" })
  yield* atomically(apply(seed))
}, Effect.mapError(blame))

/** A project to try the API with. */
export interface Demo {
  readonly projectId: string
  readonly userId: string
  readonly token: string
  /** The token of a key that may do everything. */
  readonly adminToken: string
}

/** Creates a project with three members, an API key for it, and one of an admin. */
const demo = Effect.gen(function* () {
  const memberships = yield* Memberships
  const apiKeys = yield* ApiKeys
  const projectId = "demo"
  yield* memberships.createProject(projectId)
  for (const userId of ["1001", "1002", "1003"]) {
    yield* memberships.grant({ projectId, userId, endDate: "2027-01-01T00:00:00.000Z" })
  }
  const { token } = yield* apiKeys.issue({ projects: [projectId] })
  const { token: adminToken } = yield* apiKeys.issue({ projects: "all", role: "admin" })
  return { projectId, userId: "1001", token, adminToken } satisfies Demo
})

/** Creates the demo, unless there are projects or API keys. */
export const demoOnce = Effect.gen(function* () {
  const projects = yield* (yield* Memberships).listProjects({ limit: 1 })
  const keys = yield* (yield* ApiKeys).list({ limit: 1 })
  return projects.length + keys.length === 0 ? yield* atomically(demo) : undefined
})
