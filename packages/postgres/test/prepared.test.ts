/** Connections of Tenure's own, without a pooler in between. */

import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { expect, inject, it, onTestFinished } from "vitest"
import { failOnLockTimeouts, makeConnections } from "../src/connection/pool.ts"

it("plan a statement once, whatever the client of the host does, and keep no other", async () => {
  const url = Redacted.make(inject("databaseUrl"))
  const connections = makeConnections({ url, prepare: false }, false)
  onTestFinished(connections.close)
  const asked = "SELECT statement, from_sql FROM pg_prepared_statements"
  const rows = await Effect.runPromise(
    Effect.flatMap(connections.open(failOnLockTimeouts, 10_000), ({ run }) =>
      Effect.andThen(run(asked, []), run(asked, [])),
    ),
  )
  expect(rows).toEqual([{ statement: asked, from_sql: false }])
})
