/**
 * The command `tenure-postgres-migrate`, and its progress bar.
 *
 * Creates the tables, or brings them up to date: `DATABASE_URL=postgres://… tenure-migrate [schema]`.
 *
 * With `--from file:./data` or `--from postgres://…`, copies everything from there, into empty tables. `--to`
 * can take the place of `DATABASE_URL`.
 *
 * With `--encrypt-secrets`, encrypts all webhook secrets with the first key in `TENURE_ENCRYPTION_KEY`. With
 * `--decrypt-secrets`, decrypts them; the variable begins with `plain`.
 */

import { type ParseArgsOptionsConfig, parseArgs } from "node:util"
import { PgClient } from "@effect/sql-pg"
import { version } from "@tenure/core/internal"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { migrate } from "../index.ts"
import type { CopyProgress } from "./copy-database.ts"
import {
  type Direction,
  type Load,
  messageOf,
  openDatabase,
  runCopyDatabase,
  runRewriteSecrets,
  serversFile,
} from "./upkeep.ts"

/** Shows progress: a bar on a terminal, and a line for each table elsewhere. */
interface ProgressBar {
  readonly show: (progress: CopyProgress) => void
  /** Leaves the bar's line. */
  readonly end: () => void
}

/** The stream that progress is shown on. */
interface Output {
  readonly isTTY?: boolean
  readonly write: (text: string) => unknown
}

const width = 30

const barOf = ({ of, rows, table }: CopyProgress): string => {
  const done = Math.floor((width * rows) / of)
  const percent = Math.floor((100 * rows) / of)
  return `[${"#".repeat(done)}${"-".repeat(width - done)}] ${percent} % ${table}`
}

// Clears the line and returns to its beginning.
const clear = "\r\u001B[K"

/** Makes a bar. */
const makeProgressBar = (output: Output): ProgressBar => {
  let table: string | undefined
  if (output.isTTY === true)
    return {
      show: (progress) => output.write(`${clear}${barOf(progress)}`),
      end: () => output.write(clear),
    }
  return {
    show: (progress) => {
      if (progress.table === table) return
      table = progress.table
      output.write(`${table}…\n`)
    },
    end: () => undefined,
  }
}

class UsageError extends Error {
  override readonly name = "UsageError"
}

const variable = (name: string, expected: string): string => {
  const value = process.env[name]
  if (value === undefined) throw new UsageError(`${name} must be ${expected}`)
  return value
}

/** Applies pending migrations, and prints their numbers. */
const applied = (schema: string | undefined) =>
  Effect.map(migrate({ schema }), (numbers) =>
    numbers.length === 0 ? "Nothing to do." : `Applied: ${numbers.join(", ")}.`,
  )

/** Encrypts or decrypts the secrets, and prints how many. */
const rewritten = (schema: string | undefined, direction: Direction) =>
  Effect.map(runRewriteSecrets(schema, direction), (changed) => {
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

/** Copies everything from another database, and prints how much. */
const moved = Effect.fnUntraced(function* (schema: string | undefined, source: string, load: Load) {
  const from = yield* Effect.map(
    Layer.build(openDatabase(source, "--from", load)),
    Context.get(PgClient.PgClient),
  )
  const bar = makeProgressBar(process.stderr)
  const rows = yield* Effect.ensuring(
    runCopyDatabase(from, yield* PgClient.PgClient, schema, bar.show),
    Effect.sync(bar.end),
  )
  const lines = [...rows].map(([table, count]) => `${table}: ${count} rows`)
  return [...lines, "Moved. Every table has the same rows at both ends."].join("\n")
}, Effect.scoped)

const options = {
  from: { type: "string" },
  to: { type: "string" },
  "encrypt-secrets": { type: "boolean", default: false },
  "decrypt-secrets": { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
  version: { type: "boolean", short: "v", default: false },
} as const satisfies ParseArgsOptionsConfig

const usage = `Usage: tenure-migrate [SCHEMA] [--to URL] [--from URL] [--encrypt-secrets | --decrypt-secrets]

Creates the tables in the database of DATABASE_URL or --to, or brings them up to date.

  --from URL          copies everything from another database into empty tables
  --encrypt-secrets   encrypts the secrets of webhooks with the first key of TENURE_ENCRYPTION_KEY
  --decrypt-secrets   decrypts them; the variable begins with plain
  --help, --version`

/** Reads the arguments. */
const readArguments = () => {
  try {
    return parseArgs({ allowPositionals: true, options })
  } catch (error) {
    throw new UsageError(`${messageOf(error)}\n\n${usage}`)
  }
}

const run = async (load: Load): Promise<string> => {
  const { positionals, values } = readArguments()
  const { from, help, to, version: asksVersion, ...flags } = values
  if (help) return usage
  if (asksVersion) return `tenure ${version}`
  const [schema, further] = positionals
  if (further !== undefined) throw new UsageError(`There is one schema, not also ${further}`)
  const url =
    to ?? variable("DATABASE_URL", "set, for example postgres://user:password@host:5432/database")
  const direction = directionOf(flags)
  const work = Effect.suspend<string, unknown, PgClient.PgClient>(() => {
    if (from !== undefined) return moved(schema, from, load)
    return direction === undefined ? applied(schema) : rewritten(schema, direction)
  })
  if (serversFile(url) !== undefined)
    throw new UsageError(
      "DATABASE_URL must be one database: for several servers, run tenure migrate",
    )
  const name = to === undefined ? "DATABASE_URL" : "--to"
  return Effect.runPromise(Effect.provide(work, openDatabase(url, name, load)))
}

/**
 * Runs the command with the process's arguments and environment, and sets its exit code.
 *
 * @param load - imports `@tenure/embedded`
 */
export const main = async (load: Load): Promise<void> => {
  try {
    process.stdout.write(`${await run(load)}\n`)
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n`)
    process.exitCode = error instanceof UsageError ? 2 : 1
  }
}
