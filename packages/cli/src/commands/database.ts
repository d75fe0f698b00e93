/** `tenure migrate`, `tenure export` and `tenure import --all`: a database as a whole. */

import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { Failure, usageFailure } from "../support/failure.ts"
import { booleanFlag } from "../support/flags.ts"
import { jsonFlag, printItems, printRecord } from "../support/output.ts"
import { resolveDatabase, resolveOtherDatabase, targetFlags } from "../support/target.ts"
import { pluralize } from "../support/text.ts"
import type { Migrated } from "./database-upkeep.ts"

const dryRun = booleanFlag(
  "dry-run",
  "Tells which migrations would be applied, and changes nothing",
)

const encrypt = booleanFlag(
  "encrypt-secrets",
  "Also encrypts the secrets of all webhooks with the first key of TENURE_ENCRYPTION_KEY",
)

const decrypt = booleanFlag(
  "decrypt-secrets",
  "Also decrypts them; TENURE_ENCRYPTION_KEY begins with plain",
)

const cells = Flag.Int("cells").pipe(
  Flag.filter(
    (count) => count >= 1 && count <= 1000,
    () => "must be between 1 and 1000",
  ),
  Flag.optional,
  Flag.withDescription(
    "How many cells to make on several servers, once: a project stays in the cell that a hash of its id tells",
  ),
)

const rowOf = (migrated: Migrated) => ({
  ...migrated,
  migrations: migrated.migrations.map(String),
})

/** The result for one schema among several. */
interface Outcome {
  readonly name: string
  readonly result: Result.Result<Migrated, Failure>
}

const outcomeRow = ({ name, result }: Outcome) => ({
  schema: name,
  ...(Result.isSuccess(result)
    ? { ...rowOf(result.success), problem: null }
    : { applied: false, migrations: [], problem: result.failure.message }),
})

/** Prints each schema's result. If one failed, fails with its exit code. */
const printOutcomes = Effect.fnUntraced(function* (outcomes: ReadonlyArray<Outcome>) {
  yield* printItems(Stream.fromIterable(outcomes.map(outcomeRow)), (row) => row)
  const failures = outcomes.flatMap(({ result }) =>
    Result.isFailure(result) ? [result.failure] : [],
  )
  const [first] = failures
  if (first === undefined) return
  const message = `${failures.length} of ${pluralize(outcomes.length, "schema")} failed. The command can be repeated.`
  return yield* new Failure({ kind: first.kind, message })
})

/** The command. */
export const migrateCommand = Command.make(
  "migrate",
  { dryRun, encrypt, decrypt, cells },
  Effect.fnUntraced(function* ({ cells: count, ...given }) {
    if (given.encrypt && given.decrypt)
      return yield* usageFailure("--encrypt-secrets and --decrypt-secrets exclude each other.")
    const { schema, url } = yield* resolveDatabase
    const upkeep = yield* Effect.promise(() => import("./database-upkeep.ts"))
    const servers = yield* upkeep.serversOf(url)
    if (servers === undefined)
      return Option.isSome(count)
        ? yield* usageFailure("--cells takes several servers: servers: and the path of a file.")
        : yield* printRecord(yield* upkeep.migrateDatabase(url, schema, given), rowOf)
    if (!given.dryRun) yield* upkeep.makeCells(servers, schema, Option.getOrUndefined(count))
    const several = yield* upkeep.schemasOf(servers, schema)
    // An unavailable server does not stop the others' migrations.
    yield* printOutcomes(
      yield* Effect.forEach(several, (one) =>
        Effect.map(
          Effect.result(upkeep.migrateDatabase(one.url, one.name, given, "existing")),
          (result): Outcome => ({
            name: one.name,
            result,
          }),
        ),
      ),
    )
  }),
).pipe(
  Command.withDescription(
    "Creates the tables of a database, or of the cells of several servers, or brings them up to date",
  ),
  Command.withExamples([
    { command: "tenure migrate --dry-run --database postgres://owner@localhost/app" },
    { command: "tenure migrate --cells 16 --database servers:./servers.json" },
  ]),
  Command.withGlobalFlags([jsonFlag, ...targetFlags]),
)

const other = (description: string) =>
  Argument.String("place").pipe(
    Argument.withDescription(
      `${description}: file:FOLDER, the name of a profile, or a URL without a password`,
    ),
  )

const move = Effect.fnUntraced(function* (from: string, to: string, schema: string | undefined) {
  const upkeep = yield* Effect.promise(() => import("./database-upkeep.ts"))
  yield* printRecord(yield* upkeep.copyToDatabase(from, to, schema), (rows) => ({ ...rows }))
})

/** `tenure export`. */
export const exportCommand = Command.make(
  "export",
  { to: other("The database to fill, which must be empty") },
  Effect.fnUntraced(function* ({ to }) {
    const { schema, url } = yield* resolveDatabase
    yield* move(url, yield* resolveOtherDatabase(to), schema)
  }),
).pipe(
  Command.withDescription(
    "Copies everything, as it is at one moment, to another database, and compares both",
  ),
  Command.withExamples([
    { command: "tenure export file:./backup --database postgres://owner@localhost/app" },
  ]),
  Command.withGlobalFlags([jsonFlag, ...targetFlags]),
)

/** `tenure import --all`. */
export const importCommand = Command.make(
  "import",
  {
    from: other("The database to copy"),
    all: booleanFlag("all", "Everything: for members alone, see tenure members import"),
  },
  Effect.fnUntraced(function* ({ all, from }) {
    if (!all)
      return yield* usageFailure("Give --all, or use tenure members import for members alone.")
    const { schema, url } = yield* resolveDatabase
    yield* move(yield* resolveOtherDatabase(from), url, schema)
  }),
).pipe(
  Command.withDescription(
    "Copies everything, as it is at one moment, from another database to an empty one, and compares both",
  ),
  Command.withExamples([
    { command: "tenure import --all file:./data --database postgres://owner@localhost/app" },
  ]),
  Command.withGlobalFlags([jsonFlag, ...targetFlags]),
)
