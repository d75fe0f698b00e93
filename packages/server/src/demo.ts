/** A project to try the API with. The tokens of its keys stay in the data folder. */

import { readFile, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { ApiKeys, Memberships } from "@tenure/core/effect"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { atomically } from "./seed.ts"
import { StartError } from "./start-error.ts"

/** What the commands for trying the API need. */
export interface Demo {
  readonly projectId: string
  readonly userId: string
  readonly token: string
  /** The token of a key that may do everything. */
  readonly adminToken: string
}

const place = { projectId: "demo", userId: "1001" }

const Tokens = Schema.fromJsonString(
  Schema.Struct({ token: Schema.String, adminToken: Schema.String }),
)

type Tokens = typeof Tokens.Type

const fileIn = (folder: string): string => join(folder, "demo.json")

/** Writes the tokens for the user of this process alone. */
const keep = (folder: string, { adminToken, token }: Tokens) =>
  Effect.tryPromise({
    try: async () => {
      // The mode counts only for a new file.
      await rm(fileIn(folder), { force: true })
      await writeFile(fileIn(folder), `${JSON.stringify({ token, adminToken })}\n`, { mode: 0o600 })
    },
    catch: (fault) => new StartError({ message: `DATABASE_URL: ${String(fault)}` }),
  })

/** Reads the tokens that were kept. Without any, commands cannot be printed, and that is all. */
const readKept = (folder: string) =>
  Effect.tryPromise(() => readFile(fileIn(folder), "utf8")).pipe(
    Effect.andThen(Schema.decodeUnknownEffect(Tokens)),
    Effect.option,
    Effect.map(Option.getOrUndefined),
  )

/** Creates a project with three members, an API key for it, and one of an admin. */
const create = Effect.gen(function* () {
  const memberships = yield* Memberships
  const apiKeys = yield* ApiKeys
  const { projectId } = place
  yield* memberships.createProject(projectId)
  for (const userId of ["1001", "1002", "1003"]) {
    yield* memberships.grant({ projectId, userId, endDate: "2027-01-01T00:00:00.000Z" })
  }
  const { token } = yield* apiKeys.issue({ projects: [projectId], name: "demo client" })
  const { token: adminToken } = yield* apiKeys.issue({
    projects: "all",
    role: "admin",
    name: "demo admin",
  })
  return { token, adminToken } satisfies Tokens
})

/** Tells whether the demo still has its project and its keys. */
const isThere = Effect.fnUntraced(function* ({ adminToken, token }: Tokens) {
  const within = new Set([place.projectId])
  const projects = yield* (yield* Memberships).listProjects({ within, limit: 1 })
  const apiKeys = yield* ApiKeys
  const keys = yield* Effect.forEach([token, adminToken], apiKeys.authenticate)
  return projects.length > 0 && keys.every((key) => key !== undefined)
})

/**
 * Creates the demo if there is no project and no API key, or finds that of an earlier start. Returns `undefined` if
 * its project or one of its keys is gone.
 *
 * @param folder - where its tokens are kept, if anything is
 */
export const demoIn = Effect.fnUntraced(function* (folder: string | undefined) {
  const projects = yield* (yield* Memberships).listProjects({ limit: 1 })
  const keys = yield* (yield* ApiKeys).list({ limit: 1 })
  if (projects.length + keys.length === 0) {
    // A start that is cut off between the two begins anew.
    const kept = (tokens: Tokens) => (folder === undefined ? Effect.void : keep(folder, tokens))
    return { ...place, ...(yield* atomically(Effect.tap(create, kept))) } satisfies Demo
  }
  const tokens = folder === undefined ? undefined : yield* readKept(folder)
  if (tokens === undefined || !(yield* isThere(tokens))) return undefined
  return { ...place, ...tokens } satisfies Demo
})
