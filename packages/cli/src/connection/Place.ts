/** Where a command finds Tenure: at a server, or in a database. */

import * as Flag from "effect/cli/Flag"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { usage } from "../Failure.ts"
import * as Secret from "../input/Secret.ts"
import * as Profiles from "./Profiles.ts"

/** The server to call. */
interface Server {
  readonly _tag: "Server"
  readonly url: string
  readonly token: string
}

/** The database to use. */
export interface Database {
  readonly _tag: "Database"
  /** `postgres://…`, or `file:` and the path of a folder. */
  readonly url: string
  readonly schema: string | undefined
}

/** Where a command finds Tenure. */
export type Place = Server | Database

const text = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar(metavar),
    Flag.withDescription(description),
    Flag.optional,
  )

const Profile = GlobalFlag.Setting("profile")({
  flag: text("profile", "NAME", "The connection of this name: see tenure profiles"),
})

const Url = GlobalFlag.Setting("url")({
  flag: text("url", "URL", "The server, as TENURE_URL; its token is TENURE_TOKEN"),
})

const DatabaseUrl = GlobalFlag.Setting("database")({
  flag: text(
    "database",
    "URL",
    "The database in place of a server, as TENURE_DATABASE_URL: file:./data or postgres://…",
  ),
})

const Schema = GlobalFlag.Setting("schema")({
  flag: text(
    "schema",
    "NAME",
    "The schema that has the tables, as TENURE_SCHEMA: tenure by default",
  ),
})

/** The flags of commands that use a server or a database. */
export const flags = [Profile, Url, DatabaseUrl, Schema] as const

/** What the flags and the environment say. */
export interface Given {
  readonly profile?: string | undefined
  readonly url?: string | undefined
  readonly database?: string | undefined
  readonly schema?: string | undefined
}

/** Whether a URL has a password, which everybody on the machine can read in an argument. */
const hasPassword = (url: string): boolean =>
  URL.canParse(url) && (new URL(url).password !== "" || /[?&]password=/i.test(url))

/** A URL of a database as everybody may see it. */
export const withoutPassword = (url: string): string => {
  if (!hasPassword(url)) return url
  const shown = new URL(url)
  shown.password = ""
  shown.searchParams.delete("password")
  return shown.href
}

const variable = (name: string) => Config.option(Config.NonEmptyString(name))

const givenByFlags = Effect.gen(function* () {
  return {
    profile: Option.getOrUndefined(yield* Profile),
    url: Option.getOrUndefined(yield* Url),
    database: Option.getOrUndefined(yield* DatabaseUrl),
    schema: Option.getOrUndefined(yield* Schema),
  }
})

const givenByEnvironment = Effect.gen(function* () {
  return {
    profile: Option.getOrUndefined(yield* variable("TENURE_PROFILE")),
    url: Option.getOrUndefined(yield* variable("TENURE_URL")),
    database: Option.getOrUndefined(yield* variable("TENURE_DATABASE_URL")),
    schema: Option.getOrUndefined(yield* variable("TENURE_SCHEMA")),
  }
}).pipe(Effect.catchTag("ConfigError", ({ message }) => Effect.fail(usage(message))))

/** The token in the environment, or one that is asked for. */
export const token = Effect.gen(function* () {
  const given = yield* Effect.orDie(variable("TENURE_TOKEN"))
  return Option.isSome(given)
    ? given.value
    : yield* Secret.ask("Token", "TENURE_TOKEN must be the token of an API key.")
})

const ofProfile = Effect.fnUntraced(function* (name: string, schema: string | undefined) {
  const profile = (yield* Profiles.read)[name]
  if (profile === undefined)
    return yield* usage(`There is no profile ${name}: tenure profiles add ${name}`)
  return "url" in profile
    ? ({ _tag: "Server", ...profile } satisfies Server)
    : ({
        _tag: "Database",
        url: profile.database,
        schema: schema ?? profile.schema,
      } satisfies Database)
})

const nothing =
  "Where is Tenure? Set TENURE_URL and TENURE_TOKEN, or TENURE_DATABASE_URL, or add a profile: tenure profiles add default"

/** Finds the place in what is given together: at most one of a profile, a URL and a database. */
const ofGiven = Effect.fnUntraced(function* ({ database, profile, schema, url }: Given) {
  const given = [profile, url, database].filter((one) => one !== undefined)
  if (given.length > 1)
    return yield* usage("Give one of a profile, a URL and a database, not several of them.")
  if (database !== undefined) return { _tag: "Database", url: database, schema } satisfies Database
  if (url !== undefined) return { _tag: "Server", url, token: yield* token } satisfies Server
  return profile === undefined ? undefined : yield* ofProfile(profile, schema)
})

/** Refuses a URL with a password in the arguments. */
const checkArgument = (url: string) =>
  hasPassword(url)
    ? Effect.fail(
        usage(
          "Everybody can read a password in an argument: set TENURE_DATABASE_URL, or add a profile.",
        ),
      )
    : Effect.void

/** Finds the place: by the flags, else by the environment, else in the standard profile. */
export const find = Effect.gen(function* () {
  const flagged = yield* givenByFlags
  const environment = yield* givenByEnvironment
  const schema = flagged.schema ?? environment.schema
  if (flagged.database !== undefined) yield* checkArgument(flagged.database)
  const found =
    (yield* ofGiven({ ...flagged, schema })) ?? (yield* ofGiven({ ...environment, schema }))
  if (found !== undefined) return found
  const profiles = yield* Profiles.read
  return Object.hasOwn(profiles, Profiles.standard)
    ? yield* ofProfile(Profiles.standard, schema)
    : yield* usage(nothing)
})

const isDatabase = (place: Place) =>
  place._tag === "Database"
    ? Effect.succeed(place)
    : Effect.fail(usage("This needs a database: --database, TENURE_DATABASE_URL or a profile."))

/** Finds the place, which must be a database. */
export const findDatabase = Effect.flatMap(find, isDatabase)

/** The URL of another database, as an argument names it: its URL, or a profile. */
export const otherDatabase = Effect.fnUntraced(function* (given: string) {
  if (/^(?:file|postgres|postgresql):/.test(given)) {
    yield* checkArgument(given)
    return given
  }
  return (yield* isDatabase(yield* ofProfile(given, undefined))).url
})
