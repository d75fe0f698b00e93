/** The demo: a project for trying the API, and curl commands ready to paste. */

import { readFile, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { ApiKeys, Memberships } from "@tenure/core/effect"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { atomically } from "./seed.ts"
import { StartError } from "./start-error.ts"

/** A project for trying the API, with tokens. */
export interface Demo {
  readonly projectId: string
  readonly userId: string
  readonly token: string
  /** The token of an admin. */
  readonly adminToken: string
}

const place = { projectId: "demo", userId: "1001" }

const Tokens = Schema.fromJsonString(
  Schema.Struct({ token: Schema.String, adminToken: Schema.String }),
)

type Tokens = typeof Tokens.Type

const fileIn = (folder: string): string => join(folder, "demo.json")

/** Writes the tokens, readable for the user of this process alone. */
const keep = (folder: string, { adminToken, token }: Tokens) =>
  Effect.tryPromise({
    try: async () => {
      // The mode counts only for a new file.
      await rm(fileIn(folder), { force: true })
      await writeFile(fileIn(folder), `${JSON.stringify({ token, adminToken })}\n`, { mode: 0o600 })
    },
    catch: (fault) => new StartError({ message: `DATABASE_URL: ${String(fault)}` }),
  })

/** Reads the tokens from an earlier start. Without them, the server starts, but prints no commands. */
const readKept = (folder: string) =>
  Effect.tryPromise(() => readFile(fileIn(folder), "utf8")).pipe(
    Effect.andThen(Schema.decodeUnknownEffect(Tokens)),
    Effect.option,
    Effect.map(Option.getOrUndefined),
  )

/** Creates a project with three members, and API keys for a client and an admin. */
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
 * Creates the demo if there is no project and no API key, or finds the one from an earlier start. Returns
 * `undefined` if its project or one of its keys is gone.
 *
 * @param folder - for its tokens, if data are kept in a folder
 */
export const demoIn = Effect.fnUntraced(function* (folder: string | undefined) {
  const projects = yield* (yield* Memberships).listProjects({ limit: 1 })
  const keys = yield* (yield* ApiKeys).list({ limit: 1 })
  if (projects.length + keys.length === 0) {
    // Together, so that an interrupted start begins anew.
    const kept = (tokens: Tokens) => (folder === undefined ? Effect.void : keep(folder, tokens))
    return { ...place, ...(yield* atomically(Effect.tap(create, kept))) } satisfies Demo
  }
  const tokens = folder === undefined ? undefined : yield* readKept(folder)
  if (tokens === undefined || !(yield* isThere(tokens))) return undefined
  return { ...place, ...tokens } satisfies Demo
})

const day = 86_400_000

const json = (body: object): string =>
  `-H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`

/** Formats a command for each endpoint, with the demo project. */
export const formatCurls = (
  url: string,
  { adminToken, projectId, token, userId }: Demo,
  now: number,
): string => {
  const project = `${url}/v2/projects/${projectId}`
  const webhooks = `${project}/integrations/webhooks`
  const authorization = `-H 'Authorization: Bearer ${token}'`
  // Restarts on the same day print the same text.
  const today = now - (now % day)
  const extend = { extend: new Date(today + 30 * day).toISOString() }
  const firstWebhook = `$(curl -s ${authorization} '${webhooks}' | grep -o '"id":"[^"]*"' | head -n 1 | cut -d '"' -f 4)`
  return `
# Extend one membership
curl -X PATCH '${project}/memberships/${userId}/extend' ${authorization} ${json(extend)}

# Extend all memberships of the project
curl -X PATCH '${project}/memberships/extend' ${authorization} ${json({ extend: today + 60 * day })}

# Create a webhook
curl -X POST '${webhooks}' ${authorization} ${json({ url: "https://receiver.example/webhooks" })}

# List the webhooks
curl '${webhooks}' ${authorization}

# Delete the first of them
curl -X DELETE "${webhooks}/${firstWebhook}" ${authorization}

# List the API keys, with that of an admin
curl '${url}/v2/api-keys' -H 'Authorization: Bearer ${adminToken}'

# Open the console in a browser, and sign in with the token of the admin: ${adminToken}
${url}/console/
`
}

/** Describes how to get an API key for data without the demo. */
export const describeAnotherKey = (url: string, folder: string): string => {
  const ofAdmin = `-H 'Authorization: Bearer TOKEN'`
  const seed = { projects: [], api_keys: [{ token: "TOKEN", role: "admin" }] }
  return `
# Everything is in the folder ${folder}. A token is shown once, when its API key is issued.

# Create another one, with the token of the admin
curl -X POST '${url}/v2/api-keys' ${ofAdmin} ${json({ role: "client", projects: ["demo"] })}

# Give an admin a token that you choose, if you have none
echo '${JSON.stringify(seed)}' > seed.json && SEED_FILE=seed.json npm start
`
}
