/** A PostgreSQL for the tests: the one of `DATABASE_URL`, or one that is started for them. */

import type { TestProject } from "vitest/node"
// By its path: the global setup is loaded without the conditions that tests are resolved with.
import { startPostgres } from "../../testing/src/PostgresServer.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly databaseUrl: string
  }
}

export default async (project: TestProject): Promise<(() => Promise<void>) | undefined> => {
  const given = process.env["DATABASE_URL"]
  if (given !== undefined) {
    project.provide("databaseUrl", given)
    return undefined
  }
  const { stop, url } = await startPostgres({
    settings: { fsync: "off", max_connections: "200" },
  })
  project.provide("databaseUrl", url)
  return stop
}
