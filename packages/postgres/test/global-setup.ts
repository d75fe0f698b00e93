/** Provides a PostgreSQL to the tests: that of `DATABASE_URL`, or a new one. */

import type { TestProject } from "vitest/node"
// By path: Vitest resolves a global setup without the conditions of the projects.
import { startPostgres } from "../../testing/src/support/postgres-server.ts"

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
