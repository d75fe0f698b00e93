#!/usr/bin/env node
/**
 * Creates the tables, or brings them up to date: `DATABASE_URL=postgres://… tenure-migrate [schema]`.
 *
 * With `--encrypt-secrets`, encrypts the secrets of all webhooks with the first key of
 * `TENURE_ENCRYPTION_KEY`.
 */

import { parseArgs } from "node:util"
import { PgClient } from "@effect/sql-pg"
import * as Keyring from "@tenure/core/Keyring"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { encryptSecrets, migrate } from "../index.ts"

class UsageError extends Error {
  override readonly name = "UsageError"
}

const variable = (name: string, expected: string): string => {
  const value = process.env[name]
  if (value === undefined) throw new UsageError(`${name} must be ${expected}`)
  return value
}

const encryptionKeys = (): Keyring.Given => {
  const keys = Keyring.fromText(variable("TENURE_ENCRYPTION_KEY", Keyring.expectedText))
  if (keys === undefined)
    throw new UsageError(`TENURE_ENCRYPTION_KEY must be ${Keyring.expectedText}`)
  return keys
}

/** Applies the pending migrations, and tells their numbers. */
const applied = (schema: string | undefined) =>
  Effect.map(migrate({ schema }), (numbers) =>
    numbers.length === 0 ? "Nothing to do." : `Applied: ${numbers.join(", ")}.`,
  )

/** Encrypts the secrets, and tells how many. */
const encrypted = (schema: string | undefined) =>
  Effect.flatMap(
    encryptSecrets({ schema, encryption: encryptionKeys() }),
    ({ changed, problems }) =>
      problems.length === 0
        ? Effect.succeed(`Encrypted: the secrets of ${changed} webhooks.`)
        : Effect.fail(
            new UsageError(
              [...problems, `Encrypted: ${changed}. Failed: ${problems.length}.`].join("\n"),
            ),
          ),
  )

const run = async (): Promise<string> => {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { "encrypt-secrets": { type: "boolean", default: false } },
  })
  const url = variable(
    "DATABASE_URL",
    "set, for example postgres://user:password@host:5432/database",
  )
  const [schema] = positionals
  return Effect.suspend<string, unknown, PgClient.PgClient>(() =>
    values["encrypt-secrets"] ? encrypted(schema) : applied(schema),
  ).pipe(
    Effect.provide(PgClient.layer({ url: Redacted.make(url), maxConnections: 1 })),
    Effect.runPromise,
  )
}

try {
  process.stdout.write(`${await run()}\n`)
} catch (error) {
  process.stderr.write(`${error instanceof UsageError ? error.message : String(error)}\n`)
  process.exitCode = 1
}
