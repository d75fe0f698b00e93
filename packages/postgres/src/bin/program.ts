/**
 * The command `tenure-migrate`. Creates the tables, or brings them up to date: `DATABASE_URL=postgres://… tenure-migrate [schema]`.
 *
 * With `--from file:./data` or `--from postgres://…`, copies everything from there, into empty tables.
 * `--to` can take the place of `DATABASE_URL`.
 *
 * With `--encrypt-secrets`, encrypts the secrets of all webhooks with the first key of
 * `TENURE_ENCRYPTION_KEY`. With `--decrypt-secrets`, decrypts them; the variable begins with `plain`.
 *
 * With `map:` and the path of a file that names several databases, does so for each of them.
 */

import { parseArgs } from "node:util"
import { PgClient } from "@effect/sql-pg"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { migrate } from "../index.ts"
import * as Databases from "./databases.ts"
import * as ProgressBar from "./ProgressBar.ts"
import { type Direction, rewrite } from "./secrets.ts"
import { type Load, messageOf, move, open } from "./upkeep.ts"

class UsageError extends Error {
  override readonly name = "UsageError"
}

const variable = (name: string, expected: string): string => {
  const value = process.env[name]
  if (value === undefined) throw new UsageError(`${name} must be ${expected}`)
  return value
}

/** Applies the pending migrations, and tells their numbers. */
const applied = (schema: string | undefined) =>
  Effect.map(migrate({ schema }), (numbers) =>
    numbers.length === 0 ? "Nothing to do." : `Applied: ${numbers.join(", ")}.`,
  )

/** Encrypts or decrypts the secrets, and tells how many. */
const rewritten = (schema: string | undefined, direction: Direction) =>
  Effect.map(rewrite(schema, direction), (changed) => {
    const done = direction === "encrypt" ? "Encrypted" : "Decrypted"
    return `${done}: the secrets of ${changed} ${changed === 1 ? "webhook" : "webhooks"}.`
  })

const directionOf = (options: Readonly<Record<string, boolean>>): Direction | undefined => {
  const { "decrypt-secrets": decrypts, "encrypt-secrets": encrypts } = options
  if (decrypts === true && encrypts === true) {
    throw new UsageError("--encrypt-secrets and --decrypt-secrets exclude each other")
  }
  if (encrypts === true) return "encrypt"
  return decrypts === true ? "decrypt" : undefined
}

/** Copies everything from another database, and tells how much. */
const moved = Effect.fnUntraced(function* (schema: string | undefined, source: string, load: Load) {
  const from = yield* Effect.map(
    Layer.build(open(source, "--from", load)),
    Context.get(PgClient.PgClient),
  )
  const bar = ProgressBar.make(process.stderr)
  const rows = yield* Effect.ensuring(
    move(from, yield* PgClient.PgClient, schema, bar.show),
    Effect.sync(bar.end),
  )
  const lines = [...rows].map(([table, count]) => `${table}: ${count} rows`)
  return [...lines, "Moved. Every table has the same rows at both ends."].join("\n")
}, Effect.scoped)

/** Some of several databases failed. The message says what became of each. */
class SomeFailed extends Data.TaggedError("SomeFailed")<{ readonly message: string }> {}

/** Works on each of several databases, whatever becomes of the others, and tells what did. */
const onEach = Effect.fnUntraced(function* (
  map: string,
  on: (url: string) => Effect.Effect<string, unknown>,
) {
  const outcomes = yield* Effect.forEach(yield* Databases.read(map), ({ name, url }) =>
    Effect.map(Effect.result(on(url)), (result) => ({
      isDone: Result.isSuccess(result),
      line: `${name}: ${Result.isSuccess(result) ? result.success : messageOf(result.failure)}`,
    })),
  )
  const message = outcomes.map(({ line }) => line).join("\n")
  return outcomes.every(({ isDone }) => isDone) ? message : yield* new SomeFailed({ message })
})

const run = async (load: Load): Promise<string> => {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      from: { type: "string" },
      to: { type: "string" },
      "encrypt-secrets": { type: "boolean", default: false },
      "decrypt-secrets": { type: "boolean", default: false },
    },
  })
  const { from, to, ...flags } = values
  const url =
    to ?? variable("DATABASE_URL", "set, for example postgres://user:password@host:5432/database")
  const [schema] = positionals
  const direction = directionOf(flags)
  const work = Effect.suspend<string, unknown, PgClient.PgClient>(() => {
    if (from !== undefined) return moved(schema, from, load)
    return direction === undefined ? applied(schema) : rewritten(schema, direction)
  })
  const on = (one: string) =>
    Effect.provide(work, open(one, to === undefined ? "DATABASE_URL" : "--to", load))
  const map = from === undefined ? Databases.pathOf(url) : undefined
  return Effect.runPromise(map === undefined ? on(url) : onEach(map, on))
}

/**
 * Runs the command with the arguments and the environment of the process, and sets its exit code.
 *
 * @param load - imports `@tenure/embedded`
 */
export const main = async (load: Load): Promise<void> => {
  try {
    process.stdout.write(`${await run(load)}\n`)
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n`)
    process.exitCode = 1
  }
}
