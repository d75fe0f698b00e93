/** `tenure migrate`. */

import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as Place from "../connection/Place.ts"
import { Failure, usage } from "../Failure.ts"
import { toggle } from "../input/toggle.ts"
import { counted } from "../output/counted.ts"
import * as Output from "../output/Output.ts"
import type * as Upkeep from "./upkeep.ts"

const dryRun = toggle("dry-run", "Tells which migrations would be applied, and changes nothing")

const encrypt = toggle(
  "encrypt-secrets",
  "Also encrypts the secrets of all webhooks with the first key of TENURE_ENCRYPTION_KEY",
)

const decrypt = toggle(
  "decrypt-secrets",
  "Also decrypts them; TENURE_ENCRYPTION_KEY begins with plain",
)

const rowOf = (migrated: Upkeep.Migrated) => ({
  ...migrated,
  migrations: migrated.migrations.map(String),
})

/** What became of one of several databases. */
interface Outcome {
  readonly name: string
  readonly result: Result.Result<Upkeep.Migrated, Failure>
}

const outcomeRow = ({ name, result }: Outcome) => ({
  database: name,
  ...(Result.isSuccess(result)
    ? { ...rowOf(result.success), problem: null }
    : { applied: false, migrations: [], problem: result.failure.message }),
})

/** Tells what became of each database. Fails if one of them did, with its exit code. */
const tell = Effect.fnUntraced(function* (outcomes: ReadonlyArray<Outcome>) {
  yield* Output.items(Stream.fromIterable(outcomes.map(outcomeRow)), (row) => row)
  const failures = outcomes.flatMap(({ result }) =>
    Result.isFailure(result) ? [result.failure] : [],
  )
  const [first] = failures
  if (first === undefined) return
  const message = `${failures.length} of ${counted(outcomes.length, "database")} failed. The command can be repeated.`
  return yield* new Failure({ kind: first.kind, message })
})

/** The command. */
export const migrate = Command.make(
  "migrate",
  { dryRun, encrypt, decrypt },
  Effect.fnUntraced(function* (given) {
    if (given.encrypt && given.decrypt)
      return yield* usage("--encrypt-secrets and --decrypt-secrets exclude each other.")
    const { schema, url } = yield* Place.findDatabase
    const upkeep = yield* Effect.promise(() => import("./upkeep.ts"))
    const several = yield* upkeep.severalOf(url)
    if (several === undefined)
      return yield* Output.record(yield* upkeep.migrate(url, schema, given), rowOf)
    // One that does not answer keeps no other from being migrated.
    yield* tell(
      yield* Effect.forEach(several, (one) =>
        Effect.map(Effect.result(upkeep.migrate(one.url, schema, given)), (result): Outcome => ({
          name: one.name,
          result,
        })),
      ),
    )
  }),
).pipe(
  Command.withDescription(
    "Creates the tables of a database, or of each of several, or brings them up to date",
  ),
  Command.withExamples([
    { command: "tenure migrate --dry-run --database postgres://owner@localhost/app" },
  ]),
  Command.withGlobalFlags([Output.Json, ...Place.flags]),
)
