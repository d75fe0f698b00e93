/** Profiles: named connections, in a file that only its owner may read. */

import { homedir } from "node:os"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Schema from "effect/Schema"
import { type Failure, failed, usage } from "../Failure.ts"
import { fileProblem } from "../input/fileProblem.ts"

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
  const files = yield* FileSystem.FileSystem
  const { dirname } = yield* Path.Path
  const file = yield* path
  yield* files.makeDirectory(dirname(file), { recursive: true, mode: 0o700 })
  const text = `${JSON.stringify(profiles, undefined, 2)}\n`
  const temporary = `${file}.${process.pid}`
  yield* files.writeFileString(temporary, text, { mode: 0o600 })
  yield* files.rename(temporary, file)
}, explained)

/** Adds a profile, or replaces the one of this name. */
export const add = Effect.fnUntraced(function* (name: string, profile: Profile) {
  yield* write({ ...(yield* read), [name]: profile })
})

/** Removes a profile, and returns it if there was one. It stays if the predicate is false for it. */
export const remove = Effect.fnUntraced(function* (
  name: string,
  predicate: (profile: Profile) => boolean = () => true,
) {
  const { [name]: found, ...rest } = yield* read
  if (found !== undefined && predicate(found)) yield* write(rest)
  return found
})
