/** Statements on the commands' databases. */

import { PgClient, layer } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"

/** Runs statements on their own connection. */
export const runOn = (url: string, ...statements: ReadonlyArray<string>) =>
  PgClient.use((sql) =>
    Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true }),
  ).pipe(Effect.provide(layer({ url: Redacted.make(url), maxConnections: 1 })), Effect.runPromise)
