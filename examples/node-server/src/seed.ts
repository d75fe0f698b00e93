/** The data that the server starts with: that of a seed file, or a demo project. */

import { readFile } from "node:fs/promises"
import { ApiKeys } from "@tenure/core/ApiKeys"
import { Memberships } from "@tenure/core/Memberships"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { reasonsOf } from "./reasons.ts"
import { fromSchema, StartError } from "./StartError.ts"

const Seed = Schema.fromJsonString(
  Schema.Struct({
    projects: Schema.Array(
      Schema.Struct({
        id: Schema.String,
        memberships: Schema.optionalKey(
          Schema.Array(Schema.Struct({ user_id: Schema.String, end_date: Schema.String })),
        ),
        api_keys: Schema.optionalKey(Schema.Array(Schema.String)),
      }),
    ),
  }),
)

/** Adds the name of the setting to an error in the seed file. */
const blame = (fault: Error): StartError => {
  const message = Schema.isSchemaError(fault) ? fromSchema(fault).message : reasonsOf(fault)
  return new StartError({ message: `SEED_FILE: ${message}` })
}

/**
 * Creates the projects, memberships and API keys of a seed file. Leaves existing ones unchanged, so
 * seeding twice has no further effect.
 */
export const fromFile = Effect.fnUntraced(function* (path: string) {
  const memberships = yield* Memberships
  const apiKeys = yield* ApiKeys
  const text = yield* Effect.tryPromise({
    try: () => readFile(path, "utf8"),
    catch: (fault) => new StartError({ message: String(fault) }),
  })
  const { projects } = yield* Schema.decodeUnknownEffect(Seed)(text)
  for (const project of projects) {
    yield* memberships.createProject(project.id)
    for (const { end_date, user_id } of project.memberships ?? []) {
      const member = { projectId: project.id, userId: user_id }
      yield* Effect.catchTag(memberships.find(member), "MembershipNotFound", () =>
        memberships.grant({ ...member, endDate: end_date }),
      )
    }
    for (const token of project.api_keys ?? []) {
      // A key that has been revoked stays revoked.
      yield* Effect.catchTag(
        apiKeys.issue({ projects: [project.id], token }),
        "ApiKeyRevoked",
        () => Effect.void,
      )
    }
  }
}, Effect.mapError(blame))

/** A project to try the API with. */
export interface Demo {
  readonly projectId: string
  readonly userId: string
  readonly token: string
}

/** Creates a project with three members and an API key. */
export const demo = Effect.gen(function* () {
  const memberships = yield* Memberships
  const apiKeys = yield* ApiKeys
  const projectId = "demo"
  yield* memberships.createProject(projectId)
  for (const userId of ["1001", "1002", "1003"]) {
    yield* memberships.grant({ projectId, userId, endDate: "2027-01-01T00:00:00.000Z" })
  }
  const { token } = yield* apiKeys.issue({ projects: [projectId] })
  return { projectId, userId: "1001", token } satisfies Demo
})
