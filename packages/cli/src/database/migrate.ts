/** `tenure migrate`. */

import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Place from "../connection/Place.ts"
import { usage } from "../Failure.ts"
import { toggle } from "../input/toggle.ts"
import * as Output from "../output/Output.ts"

const dryRun = toggle("dry-run", "Tells which migrations would be applied, and changes nothing")

const encrypt = toggle(
  "encrypt-secrets",
  "Also encrypts the secrets of all webhooks with the first key of TENURE_ENCRYPTION_KEY",
)

const decrypt = toggle(
  "decrypt-secrets",
  "Also decrypts them; TENURE_ENCRYPTION_KEY begins with plain",
)

/** The command. */
export const migrate = Command.make(
  "migrate",
  { dryRun, encrypt, decrypt },
  Effect.fnUntraced(function* (given) {
    if (given.encrypt && given.decrypt)
      return yield* usage("--encrypt-secrets and --decrypt-secrets exclude each other.")
    const { schema, url } = yield* Place.findDatabase
    const upkeep = yield* Effect.promise(() => import("./upkeep.ts"))
    const result = yield* upkeep.migrate(url, schema, given)
    yield* Output.record(result, (all) => ({ ...all, migrations: all.migrations.map(String) }))
  }),
).pipe(
  Command.withDescription("Creates the tables of a database, or brings them up to date"),
  Command.withExamples([
    { command: "tenure migrate --dry-run --database postgres://owner@localhost/app" },
  ]),
  Command.withGlobalFlags([Output.Json, ...Place.flags]),
)
