#!/usr/bin/env node
/**
 * Creates the tables, or brings them up to date: `DATABASE_URL=postgres://… tenure-migrate [schema]`.
 *
 * With `--encrypt-secrets`, encrypts the secrets of all webhooks with the first key of
 * `TENURE_ENCRYPTION_KEY`. With `--decrypt-secrets`, decrypts them; the variable begins with `plain`.
 */

import { parseArgs } from "node:util"
import { PgClient } from "@effect/sql-pg"
import * as Keyring from "@tenure/core/Keyring"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { isSqlError } from "effect/sql/SqlError"
import { explain } from "../connection/DatabaseUnusable.ts"
import { toConfig } from "../connection/DatabaseUrl.ts"
import { migrate, rewriteSecrets } from "../index.ts"

class UsageError extends Error {
  override readonly name = "UsageError"
}

const variable = (name: string, expected: string): string => {
  const value = process.env[name]
  if (value === undefined) throw new UsageError(`${name} must be ${expected}`)
  return value
}

type Direction = "encrypt" | "decrypt"

/** Reads the keys. The servers, which have the same ones, must not write secrets the other way. */
const keysTo = (direction: Direction): Keyring.Given => {
  const keys = Keyring.fromText(variable("TENURE_ENCRYPTION_KEY", Keyring.expectedText))
  if (keys === undefined) {
    throw new UsageError(`TENURE_ENCRYPTION_KEY must be ${Keyring.expectedText}`)
  }
  if ((keys.current === undefined) === (direction === "encrypt")) {
    const beginning = direction === "encrypt" ? "the key that encrypts" : '"plain"'
    throw new UsageError(`TENURE_ENCRYPTION_KEY must begin with ${beginning}`)
  }
  return keys
}

/** Applies the pending migrations, and tells their numbers. */
const applied = (schema: string | undefined) =>
  Effect.map(migrate({ schema }), (numbers) =>
    numbers.length === 0 ? "Nothing to do." : `Applied: ${numbers.join(", ")}.`,
  )

/** Encrypts or decrypts the secrets, and tells how many. */
const rewritten = (schema: string | undefined, direction: Direction) =>
  Effect.flatMap(
    rewriteSecrets({ schema, encryption: keysTo(direction) }),
    ({ changed, problems }) => {
      const done = direction === "encrypt" ? "Encrypted" : "Decrypted"
      return problems.length === 0
        ? Effect.succeed(`${done}: the secrets of ${changed} webhooks.`)
        : Effect.fail(
            new UsageError(
              [...problems, `${done}: ${changed}. Failed: ${problems.length}.`].join("\n"),
            ),
          )
    },
  )

const directionOf = (options: Readonly<Record<string, boolean>>): Direction | undefined => {
  const { "decrypt-secrets": decrypts, "encrypt-secrets": encrypts } = options
  if (decrypts === true && encrypts === true) {
    throw new UsageError("--encrypt-secrets and --decrypt-secrets exclude each other")
  }
  if (encrypts === true) return "encrypt"
  return decrypts === true ? "decrypt" : undefined
}

const clientOf = (url: string) =>
  Layer.unwrap(
    Effect.map(toConfig(url, "DATABASE_URL"), (config) =>
      PgClient.layer({ ...config, maxConnections: 1 }),
    ),
  )

const messageOf = (error: unknown): string => {
  if (isSqlError(error)) return explain(error)
  return error instanceof Error ? error.message : String(error)
}

const run = async (): Promise<string> => {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      "encrypt-secrets": { type: "boolean", default: false },
      "decrypt-secrets": { type: "boolean", default: false },
    },
  })
  const url = variable(
    "DATABASE_URL",
    "set, for example postgres://user:password@host:5432/database",
  )
  const [schema] = positionals
  const direction = directionOf(values)
  return Effect.suspend<string, unknown, PgClient.PgClient>(() =>
    direction === undefined ? applied(schema) : rewritten(schema, direction),
  ).pipe(Effect.provide(clientOf(url)), Effect.runPromise)
}

try {
  process.stdout.write(`${await run()}\n`)
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`)
  process.exitCode = 1
}
