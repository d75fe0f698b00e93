/** Certifies the stores in a folder, port by port. */

import { PgClient } from "@effect/sql-pg"
import { postgresLayer } from "@tenure/postgres"
import { type StoreHarness, ports, storeSuite } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll } from "vitest"
import { statementsToPass } from "../../postgres/test/passing-time.ts"
import { client } from "../src/index.ts"
import { emptyTables } from "./emptying.ts"
import { folderWithDatabase } from "./folders.ts"

/** How thoroughly the stores are certified. */
interface Thoroughness {
  /** How many inputs each property gets. */
  readonly runs: number
  /** Whether the outbox is certified, too, which needs new stores for each test. */
  readonly withOutbox: boolean
}

export const certifyEmbedded = ({ runs, withOutbox }: Thoroughness): void => {
  const scope = Effect.runSync(Scope.make())
  const opened = Effect.flatMap(Effect.promise(folderWithDatabase), (path) =>
    Layer.buildWithScope(client({ path, durable: false }), scope),
  )
  // One database for all tests: each takes seconds to create.
  const shared = Effect.runSync(Effect.cached(Effect.orDie(opened)))

  beforeAll(() => Effect.runPromise(shared))
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

  const database = Layer.effectContext(shared)

  const execute = (...statements: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      for (const statement of statements) yield* sql.unsafe(statement)
    }).pipe(Effect.provide(database), Effect.orDie)

  const empty = execute(emptyTables)

  const stores = Layer.provideMerge(postgresLayer(), database)

  const storesOnce = Layer.effectContext(
    Effect.runSync(Effect.cached(Effect.orDie(Layer.buildWithScope(stores, scope)))),
  )

  const harness: StoreHarness<PgClient.PgClient> = {
    layer: Layer.provideMerge(Layer.effectDiscard(empty), stores),
    transaction: (work) => PgClient.PgClient.use((sql) => sql.withTransaction(work)),
    hasOneTransaction: true,
    advance: (millis) => execute(...statementsToPass("tenure", millis)),
  }

  // An outbox remembers what it has claimed. The other ports remember nothing.
  if (withOutbox) storeSuite("embedded", { ...harness, runs, ports: ["Outbox"] })
  storeSuite("embedded, opened once", {
    ...harness,
    layer: Layer.provideMerge(Layer.effectDiscard(empty), storesOnce),
    runs,
    ports: ports.filter((port) => port !== "Outbox"),
  })
}
