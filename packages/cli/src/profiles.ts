/** `tenure profiles`. */

import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { checkUrl } from "./connection/Api.ts"
import * as Place from "./connection/Place.ts"
import * as Profiles from "./connection/Profiles.ts"
import { Failure, usage } from "./Failure.ts"
import { toggle } from "./input/toggle.ts"
import * as Output from "./output/Output.ts"

const name = Argument.String("name").pipe(
  Argument.withDescription(`The name of the profile; ${Profiles.standard} is used without a name`),
)

const url = Flag.String("url").pipe(
  Flag.withMetavar("URL"),
  Flag.withDescription("The server; its token is TENURE_TOKEN, or asked for"),
  Flag.optional,
)

const isDatabase = toggle("database", "The database in TENURE_DATABASE_URL in place of a server")

const databaseUrl = Effect.mapError(Config.NonEmptyString("TENURE_DATABASE_URL"), () =>
  usage("TENURE_DATABASE_URL must be the URL of the database."),
)

const add = Command.make(
  "add",
  { name, url, isDatabase },
  Effect.fnUntraced(function* (given) {
    if (given.isDatabase === Option.isSome(given.url))
      return yield* usage("Give the --url of a server, or --database.")
    if (Option.isSome(given.url)) yield* checkUrl(given.url.value)
    const profile = Option.isSome(given.url)
      ? { url: given.url.value, token: yield* Place.token }
      : { database: yield* databaseUrl }
    yield* Profiles.add(given.name, profile)
    yield* Output.done(null, `Added ${given.name} to ${yield* Profiles.path}.`)
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
const shown = ([of, profile]: readonly [string, Profiles.Profile]) => ({
  name: of,
  place: "url" in profile ? profile.url : Place.withoutPassword(profile.database),
})

const list = Command.make(
  "list",
  {},
  Effect.fnUntraced(function* () {
    const found = Object.entries(yield* Profiles.read).map(shown)
    yield* Output.items(Stream.fromIterable(found), (profile) => ({ ...profile }))
  }),
).pipe(
  Command.withDescription("Lists the connections, without their secrets"),
  Command.withExamples([{ command: "tenure profiles list" }]),
)

const remove = Command.make(
  "remove",
  { name },
  Effect.fnUntraced(function* (given) {
    if ((yield* Profiles.remove(given.name)) === undefined)
      return yield* new Failure({
        kind: "notFound",
        message: `There is no profile ${given.name}.`,
      })
    yield* Output.done(null, `Removed ${given.name}.`)
  }),
).pipe(
  Command.withDescription("Removes a connection"),
  Command.withExamples([{ command: "tenure profiles remove staging" }]),
)

/** The command. */
export const profiles = Command.make("profiles").pipe(
  Command.withDescription("Connections with a name, in a file that only you can read"),
  Command.withSubcommands([add, list, remove]),
  Command.withExamples([...add.examples, { command: "tenure projects list --profile staging" }]),
  Command.withGlobalFlags([Output.Json]),
)
