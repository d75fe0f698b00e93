/**
 * Finds the server or database a command works on: from flags, the environment, or a profile in a file
 * only its owner may read.
 */

import { homedir } from "node:os"
import * as Flag from "effect/cli/Flag"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { type Failure, operationFailed, usageFailure } from "./failure.ts"
import { askSecret, fileProblem } from "./input.ts"
import { openDraft } from "./whole-file.ts"

const ProfilesServer = Schema.Struct({ url: Schema.String, token: Schema.String })

const Database = Schema.Struct({
  database: Schema.String,
  schema: Schema.optionalKey(Schema.String),
})

/** A connection: to a server, or straight to its database. */
export const Profile = Schema.Union([ProfilesServer, Database])

/** A connection: to a server, or straight to its database. */
export type Profile = typeof Profile.Type

const File = Schema.fromJsonString(Schema.Record(Schema.String, Profile))

/** The profiles by name. */
export type Profiles = typeof File.Type

/** The profile used by default. */
export const defaultProfile = "default"

const configHome = Config.option(Config.NonEmptyString("XDG_CONFIG_HOME"))

/** Returns the file's path. */
export const profilesPath = Effect.gen(function* () {
  const { join } = yield* Path.Path
  const given = yield* Effect.orDie(configHome)
  const parent = Option.getOrElse(given, () => join(homedir(), ".config"))
  return join(parent, "tenure", "profiles.json")
})

/** Explains an error in the file. */
const explained = <A, R>(
  using: Effect.Effect<A, Failure | PlatformError, R>,
): Effect.Effect<A, Failure, FileSystem.FileSystem | Path.Path | R> =>
  Effect.catchTag(using, "PlatformError", (error) =>
    Effect.flatMap(profilesPath, (file) => Effect.fail(operationFailed(fileProblem(file, error)))),
  )

// Permissions for the group and all others. Windows has none.
const others = process.platform === "win32" ? 0 : 0o077

/** Reads the profiles. Fails if others than the owner may read the file. */
export const readProfiles = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const file = yield* profilesPath
  if (!(yield* files.exists(file))) return {}
  const { mode } = yield* files.stat(file)
  if ((mode & others) !== 0)
    return yield* usageFailure(`Others can read ${file}, which has tokens: chmod 600 ${file}`)
  return yield* Effect.mapError(
    Schema.decodeEffect(File)(yield* files.readFileString(file)),
    // The invalid text may be a token.
    () => usageFailure(`${file} is not as tenure profiles add writes it: mend it, or remove it.`),
  )
}).pipe(explained)

/** Replaces the profiles, as a whole or not at all. */
const write = Effect.fnUntraced(function* (profiles: Profiles) {
  const draft = yield* openDraft(yield* profilesPath, 0o600)
  yield* draft.write(`${JSON.stringify(profiles, undefined, 2)}\n`)
  yield* draft.commit
}, Effect.scoped)

// A change takes milliseconds: after 10 seconds, its process was killed.
const longestChange = 10_000

/** Tries to take a lock, and returns whether it succeeded. */
const take = Effect.fnUntraced(function* (lock: string) {
  const files = yield* FileSystem.FileSystem
  const { mtime } = yield* files
    .stat(lock)
    .pipe(Effect.orElseSucceed(() => ({ mtime: Option.none<Date>() })))
  const now = yield* Clock.currentTimeMillis
  // It is in the future if the clock was set back meanwhile.
  const isLeft = Option.exists(mtime, (at) => Math.abs(now - at.getTime()) > longestChange)
  if (isLeft) yield* files.remove(lock, { force: true })
  return yield* files.open(lock, { flag: "wx" }).pipe(
    Effect.scoped,
    Effect.as(true),
    Effect.catchIf(
      ({ reason }) => reason._tag === "AlreadyExists",
      () => Effect.succeed(false),
    ),
  )
})

/** Reads the profiles and writes them while no other process does. */
const exclusively = Effect.fnUntraced(function* <A, R>(
  change: Effect.Effect<A, Failure | PlatformError, R>,
) {
  const files = yield* FileSystem.FileSystem
  const { dirname } = yield* Path.Path
  const file = yield* profilesPath
  const lock = `${file}.lock`
  yield* files.makeDirectory(dirname(file), { recursive: true, mode: 0o700 })
  return yield* Effect.acquireUseRelease(
    Effect.repeat(take(lock), { until: (is) => is, schedule: Schedule.spaced("20 millis") }),
    () => change,
    () => Effect.ignore(files.remove(lock)),
  )
}, explained)

/** Adds or replaces a profile. */
export const addProfile = (name: string, profile: Profile) =>
  exclusively(Effect.flatMap(readProfiles, (profiles) => write({ ...profiles, [name]: profile })))

/** Adds a profile if the existing one is still the expected one. Returns whether it was added. */
export const replace = (name: string, expected: Profile | undefined, profile: Profile) =>
  exclusively(
    Effect.gen(function* () {
      const profiles = yield* readProfiles
      if (JSON.stringify(profiles[name]) !== JSON.stringify(expected)) return false
      yield* write({ ...profiles, [name]: profile })
      return true
    }),
  )

/** Removes a profile, and returns it if there was one. It stays if the predicate is false for it. */
export const removeProfile = (
  name: string,
  predicate: (profile: Profile) => boolean = () => true,
) =>
  exclusively(
    Effect.gen(function* () {
      const { [name]: found, ...rest } = yield* readProfiles
      if (found !== undefined && predicate(found)) yield* write(rest)
      return found
    }),
  )

/** The server to call. */
interface Server {
  readonly _tag: "Server"
  readonly url: string
  readonly token: string
}

/** The database to use. */
export interface DatabaseTarget {
  readonly _tag: "Database"
  /** `postgres://…`, or `file:` and a folder's path. */
  readonly url: string
  readonly schema: string | undefined
}

/** The server or database a command works on. */
export type ConnectionTarget = Server | DatabaseTarget

const text = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar(metavar),
    Flag.withDescription(description),
    Flag.optional,
  )

const PlaceProfile = GlobalFlag.Setting("profile")({
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

const PlaceSchema = GlobalFlag.Setting("schema")({
  flag: text(
    "schema",
    "NAME",
    "The schema that has the tables, as TENURE_SCHEMA: tenure by default",
  ),
})

/** Flags for commands on a server or a database. */
export const targetFlags = [PlaceProfile, Url, DatabaseUrl, PlaceSchema] as const

/** Values from flags and the environment. */
export interface TargetFlags {
  readonly profile?: string | undefined
  readonly url?: string | undefined
  readonly database?: string | undefined
  readonly schema?: string | undefined
}

// A URL of a database may lack a host, which `URL` cannot parse.
const password = /^([a-z][a-z\d+.-]*:\/\/[^/?#:@]*):[^/?#]*(?=@[^/?#@]*([/?#]|$))/i
const passwordParameter = /([?&])password=[^&#]*&?/i

/** Tells whether a URL contains a password. Everybody on the machine can read arguments. */
const hasPassword = (url: string): boolean => password.test(url) || passwordParameter.test(url)

/** Removes a database URL's password. */
export const withoutPassword = (url: string): string =>
  url
    .replace(password, "$1")
    .replaceAll(new RegExp(passwordParameter, "gi"), "$1")
    .replace(/[?&]$/, "")

const variable = (name: string) => Config.option(Config.NonEmptyString(name))

const givenByFlags = Effect.gen(function* () {
  return {
    profile: Option.getOrUndefined(yield* PlaceProfile),
    url: Option.getOrUndefined(yield* Url),
    database: Option.getOrUndefined(yield* DatabaseUrl),
    schema: Option.getOrUndefined(yield* PlaceSchema),
  }
})

const givenByEnvironment = Effect.gen(function* () {
  return {
    profile: Option.getOrUndefined(yield* variable("TENURE_PROFILE")),
    url: Option.getOrUndefined(yield* variable("TENURE_URL")),
    database: Option.getOrUndefined(yield* variable("TENURE_DATABASE_URL")),
    schema: Option.getOrUndefined(yield* variable("TENURE_SCHEMA")),
  }
}).pipe(Effect.catchTag("ConfigError", ({ message }) => Effect.fail(usageFailure(message))))

/** Reads the token from the environment, or asks for it. */
export const readToken = Effect.gen(function* () {
  const given = yield* Effect.orDie(variable("TENURE_TOKEN"))
  return Option.isSome(given)
    ? given.value
    : yield* askSecret("Token", "TENURE_TOKEN must be the token of an API key.")
})

const ofProfile = Effect.fnUntraced(function* (name: string, schema: string | undefined) {
  const profile = (yield* readProfiles)[name]
  if (profile === undefined)
    return yield* usageFailure(`There is no profile ${name}: tenure profiles add ${name}`)
  return "url" in profile
    ? ({ _tag: "Server", ...profile } satisfies Server)
    : ({
        _tag: "Database",
        url: profile.database,
        schema: schema ?? profile.schema,
      } satisfies DatabaseTarget)
})

const nothing =
  "Where is Tenure? Set TENURE_URL and TENURE_TOKEN, or TENURE_DATABASE_URL, or add a profile: tenure profiles add default"

/** Determines the target from at most one setting: a profile, a URL or a database. */
const ofGiven = Effect.fnUntraced(function* ({ database, profile, schema, url }: TargetFlags) {
  const given = [profile, url, database].filter((one) => one !== undefined)
  if (given.length > 1)
    return yield* usageFailure("Give one of a profile, a URL and a database, not several of them.")
  if (database !== undefined)
    return { _tag: "Database", url: database, schema } satisfies DatabaseTarget
  if (url !== undefined) return { _tag: "Server", url, token: yield* readToken } satisfies Server
  return profile === undefined ? undefined : yield* ofProfile(profile, schema)
})

/** Refuses a URL with a password in the arguments. */
const checkArgument = (url: string) =>
  hasPassword(url)
    ? Effect.fail(
        usageFailure(
          "Everybody can read a password in an argument: set TENURE_DATABASE_URL, or add a profile.",
        ),
      )
    : Effect.void

/** Finds the place: by the flags, else by the environment, else in the standard profile. */
export const resolveTarget = Effect.gen(function* () {
  const flagged = yield* givenByFlags
  const environment = yield* givenByEnvironment
  const schema = flagged.schema ?? environment.schema
  if (flagged.database !== undefined) yield* checkArgument(flagged.database)
  const found =
    (yield* ofGiven({ ...flagged, schema })) ?? (yield* ofGiven({ ...environment, schema }))
  if (found !== undefined) return found
  const profiles = yield* readProfiles
  return Object.hasOwn(profiles, defaultProfile)
    ? yield* ofProfile(defaultProfile, schema)
    : yield* usageFailure(nothing)
})

const isDatabase = (place: ConnectionTarget) =>
  place._tag === "Database"
    ? Effect.succeed(place)
    : Effect.fail(
        usageFailure("This needs a database: --database, TENURE_DATABASE_URL or a profile."),
      )

/** Determines the target, which must be a database. */
export const resolveDatabase = Effect.flatMap(resolveTarget, isDatabase)

/** Determines another database's URL from an argument: the URL itself, or a profile. */
export const resolveOtherDatabase = Effect.fnUntraced(function* (given: string) {
  if (/^(?:file|postgres|postgresql):/.test(given)) {
    yield* checkArgument(given)
    return given
  }
  return (yield* isDatabase(yield* ofProfile(given, undefined))).url
})
