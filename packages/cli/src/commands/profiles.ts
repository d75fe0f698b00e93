/** `tenure profiles`. */

import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { checkUrl } from "../support/api.ts"
import { Failure, usageFailure } from "../support/failure.ts"
import { booleanFlag } from "../support/flags.ts"
import { jsonFlag, printDone, printItems } from "../support/output.ts"
import {
  type Profile,
  addProfile,
  defaultProfile,
  profilesPath,
  readProfiles,
  readToken,
  removeProfile,
  withoutPassword,
} from "../support/target.ts"

const name = Argument.String("name").pipe(
  Argument.withDescription(`The name of the profile; ${defaultProfile} is used without a name`),
)

const url = Flag.String("url").pipe(
  Flag.withMetavar("URL"),
  Flag.withDescription("The server; its token is TENURE_TOKEN, or asked for"),
  Flag.optional,
)

const isDatabase = booleanFlag(
  "database",
  "The database in TENURE_DATABASE_URL in place of a server",
)

const databaseUrl = Effect.mapError(Config.NonEmptyString("TENURE_DATABASE_URL"), () =>
  usageFailure("TENURE_DATABASE_URL must be the URL of the database."),
)

const add = Command.make(
  "add",
  { name, url, isDatabase },
  Effect.fnUntraced(function* (given) {
    if (given.isDatabase === Option.isSome(given.url))
      return yield* usageFailure("Give the --url of a server, or --database.")
    if (Option.isSome(given.url)) yield* checkUrl(given.url.value)
    const profile = Option.isSome(given.url)
      ? { url: given.url.value, token: yield* readToken }
      : { database: yield* databaseUrl }
    yield* addProfile(given.name, profile)
    yield* printDone(null, `Added ${given.name} to ${yield* profilesPath}.`)
  }),
).pipe(
  Command.withDescription("Adds a connection, or replaces the one of this name"),
  Command.withExamples([
    { command: "tenure profiles add default --url https://example.com/members" },
    {
      command:
        "TENURE_DATABASE_URL=postgres://owner@localhost/app tenure profiles add local --database",
    },
  ]),
)

/** A profile without its secrets. */
const shown = ([of, profile]: readonly [string, Profile]) => ({
  name: of,
  place: "url" in profile ? profile.url : withoutPassword(profile.database),
})

const list = Command.make(
  "list",
  {},
  Effect.fnUntraced(function* () {
    const found = Object.entries(yield* readProfiles).map(shown)
    yield* printItems(Stream.fromIterable(found), (profile) => ({ ...profile }))
  }),
).pipe(
  Command.withDescription("Lists the connections, without their secrets"),
  Command.withExamples([{ command: "tenure profiles list" }]),
)

const remove = Command.make(
  "remove",
  { name },
  Effect.fnUntraced(function* (given) {
    if ((yield* removeProfile(given.name)) === undefined)
      return yield* new Failure({
        kind: "notFound",
        message: `There is no profile ${given.name}.`,
      })
    yield* printDone(null, `Removed ${given.name}.`)
  }),
).pipe(
  Command.withDescription("Removes a connection"),
  Command.withExamples([{ command: "tenure profiles remove staging" }]),
)

/** The command. */
export const profilesCommand = Command.make("profiles").pipe(
  Command.withDescription("Connections with a name, in a file that only you can read"),
  Command.withSubcommands([add, list, remove]),
  Command.withExamples([...add.examples, { command: "tenure projects list --profile staging" }]),
  Command.withGlobalFlags([jsonFlag]),
)
