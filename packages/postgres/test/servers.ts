/** Servers for one test file, statements on any server, and the program `tenure-migrate`. */

import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { type PostgresServer, startPostgres } from "@tenure/testing/postgres-server"
import pg from "pg"
import { afterAll, beforeAll } from "vitest"

/** Runs statements on their own connection. Returns the last one's rows. */
export const queryAt = async <Row extends pg.QueryResultRow>(
  url: string,
  ...statements: ReadonlyArray<string>
): Promise<ReadonlyArray<Row>> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    let rows: ReadonlyArray<Row> = []
    for (const statement of statements) ({ rows } = await client.query<Row>(statement))
    return rows
  } finally {
    await client.end()
  }
}

/** Starts a server for a test file. */
export const ownServer = (settings: Readonly<Record<string, string>> = {}) => {
  let server: PostgresServer | undefined
  beforeAll(async () => {
    server = await startPostgres({ settings })
  })
  afterAll(() => server?.stop())
  return (): PostgresServer => {
    if (server === undefined) throw new Error("the server starts before the tests")
    return server
  }
}

const program = fileURLToPath(new URL("../src/bin/migrate.ts", import.meta.url))
const { NODE_COMPILE_CACHE } = process.env

/** Runs `tenure-migrate` with these arguments, in an environment that has nothing else. */
export const runMigrate = (
  args: ReadonlyArray<string>,
  environment: Readonly<Record<string, string>> = {},
  nodeOptions: ReadonlyArray<string> = [],
) =>
  promisify(execFile)(
    process.execPath,
    ["-C", "@tenure/source", ...nodeOptions, program, ...args],
    { env: { NODE_COMPILE_CACHE, ...environment } },
  )
