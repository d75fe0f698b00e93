/** Helpers for tests of the server: seed files, requests to its API, databases. */

import { randomUUID } from "node:crypto"
import { mkdtempSync } from "node:fs"
import { rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { send } from "@tenure/testing/conformance"
import { startPostgres } from "@tenure/testing/postgres-server"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { afterAll } from "vitest"
import type { Server } from "./programs.ts"

export type Environment = Readonly<Record<string, string>>

export const extend = "2099-01-01T00:00:00.000Z"

export const project = "/v2/projects/p1"

/** Makes a folder, which is removed after the file's tests. */
export const temporaryFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "tenure-"))
  afterAll(() => rm(folder, { recursive: true }))
  return folder
}

/** Writes a value as JSON, or a text as it is, to a new file. Returns the path. */
export const writeJson = async (folder: string, content: unknown): Promise<string> => {
  const path = join(folder, `${randomUUID()}.json`)
  await writeFile(path, typeof content === "string" ? content : JSON.stringify(content))
  return path
}

/** Sends a request with a token. */
export const call = (
  { url }: Pick<Server, "url">,
  method: string,
  path: string,
  body?: object,
  token = "a-token",
) =>
  send(url, {
    method,
    path,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  })

type Row = Readonly<Record<string, unknown>>

export type Query = (statement: string) => Promise<ReadonlyArray<Row>>

/** Runs statements on a database, in a transaction with other work. */
export const inTransaction = <A>(url: string, work: (query: Query) => Promise<A>): Promise<A> =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const run = Effect.runPromiseWith(yield* Effect.context())
    return yield* sql.withTransaction(
      Effect.flatMap(Effect.context(), (transaction) =>
        Effect.promise(() =>
          work((statement) => run(Effect.provide(sql.unsafe<Row>(statement), transaction))),
        ),
      ),
    )
  }).pipe(
    Effect.provide(PgClient.layer({ url: Redacted.make(url), maxConnections: 1 })),
    Effect.runPromise,
  )

/** Returns a function that runs a statement on a database. */
export const queryOn =
  (url: string): Query =>
  (statement) =>
    PgClient.PgClient.use((sql) => sql.unsafe<Row>(statement)).pipe(
      Effect.provide(PgClient.layer({ url: Redacted.make(url), maxConnections: 1 })),
      Effect.runPromise,
    )

/**
 * Starts a PostgreSQL for the file's tests. Returns variables for a server on it, with a project whose members
 * are 1001, 1002, and so on.
 */
export const startDatabase = async (members: number, more: Environment) => {
  const database = await startPostgres()
  afterAll(() => database.stop())
  const folder = temporaryFolder()
  const memberships = Array.from({ length: members }, (_, index) => ({
    user_id: String(1001 + index),
    end_date: "2027-01-01T00:00:00.000Z",
  }))
  const seed = { projects: [{ id: "p1", memberships, api_keys: ["a-token"] }] }
  const environment: Environment = {
    DATABASE_URL: database.url,
    SEED_FILE: await writeJson(folder, seed),
    WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
    ...more,
  }
  return { database, environment, folder, query: queryOn(database.url) }
}
