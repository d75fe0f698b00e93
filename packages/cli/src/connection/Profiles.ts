/** Profiles: named connections, in a file that only its owner may read. */

import { homedir } from "node:os"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { type Failure, failed, usage } from "../Failure.ts"
import { fileProblem } from "../input/fileProblem.ts"
import * as WholeFile from "../output/WholeFile.ts"

const Server = Schema.Struct({ url: Schema.String, token: Schema.String })

const Database = Schema.Struct({
  database: Schema.String,
  schema: Schema.optionalKey(Schema.String),
})

/** A connection: to a server, or straight to its database. */
export const Profile = Schema.Union([Server, Database])

/** A connection: to a server, or straight to its database. */
export type Profile = typeof Profile.Type

const File = Schema.fromJsonString(Schema.Record(Schema.String, Profile))

/** The profiles by name. */
export type Profiles = typeof File.Type

/** The name of the profile that is used where nothing else is given. */
export const standard = "default"

const configHome = Config.option(Config.NonEmptyString("XDG_CONFIG_HOME"))

/** The path of the file. */
export const path = Effect.gen(function* () {
  const { join } = yield* Path.Path
  const given = yield* Effect.orDie(configHome)
  const parent = Option.getOrElse(given, () => join(homedir(), ".config"))
  return join(parent, "tenure", "profiles.json")
})

/** Says what is wrong with the file. */
const explained = <A, R>(
  using: Effect.Effect<A, Failure | PlatformError, R>,
): Effect.Effect<A, Failure, FileSystem.FileSystem | Path.Path | R> =>
  Effect.catchTag(using, "PlatformError", (error) =>
    Effect.flatMap(path, (file) => Effect.fail(failed(fileProblem(file, error)))),
  )

// The permissions of the group and of all others. Windows has none of these.
const others = process.platform === "win32" ? 0 : 0o077

/** Reads the profiles. Fails if others than the owner may read the file. */
export const read = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const file = yield* path
  if (!(yield* files.exists(file))) return {}
  const { mode } = yield* files.stat(file)
  if ((mode & others) !== 0)
    return yield* usage(`Others can read ${file}, which has tokens: chmod 600 ${file}`)
  return yield* Effect.mapError(
    Schema.decodeEffect(File)(yield* files.readFileString(file)),
    // What is invalid may be a token.
    () => usage(`${file} is not as tenure profiles add writes it: mend it, or remove it.`),
  )
}).pipe(explained)

/** Replaces the profiles, as a whole or not at all. */
const write = Effect.fnUntraced(function* (profiles: Profiles) {
  const draft = yield* WholeFile.open(yield* path, 0o600)
  yield* draft.write(`${JSON.stringify(profiles, undefined, 2)}\n`)
  yield* draft.commit
}, Effect.scoped)

// A change takes milliseconds: after so many, the process that began it was killed.
const longestChange = 10_000

/** Takes a lock, and returns whether that was possible. */
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
  const file = yield* path
  const lock = `${file}.lock`
  yield* files.makeDirectory(dirname(file), { recursive: true, mode: 0o700 })
  return yield* Effect.acquireUseRelease(
    Effect.repeat(take(lock), { until: (is) => is, schedule: Schedule.spaced("20 millis") }),
    () => change,
    () => Effect.ignore(files.remove(lock)),
  )
}, explained)

/** Adds a profile, or replaces the one of this name. */
export const add = (name: string, profile: Profile) =>
  exclusively(Effect.flatMap(read, (profiles) => write({ ...profiles, [name]: profile })))

/** Adds a profile if the one of this name is still the expected one. Returns whether it is added. */
export const replace = (name: string, expected: Profile | undefined, profile: Profile) =>
  exclusively(
    Effect.gen(function* () {
      const profiles = yield* read
      if (JSON.stringify(profiles[name]) !== JSON.stringify(expected)) return false
      yield* write({ ...profiles, [name]: profile })
      return true
    }),
  )

/** Removes a profile, and returns it if there was one. It stays if the predicate is false for it. */
export const remove = (name: string, predicate: (profile: Profile) => boolean = () => true) =>
  exclusively(
    Effect.gen(function* () {
      const { [name]: found, ...rest } = yield* read
      if (found !== undefined && predicate(found)) yield* write(rest)
      return found
    }),
  )
