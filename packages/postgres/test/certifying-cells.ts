/** Certifies cells in two databases of one server. */

import { storeSuite } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { afterAll, beforeAll } from "vitest"
import { postgres } from "../src/index.ts"
import { clientLayer, execute, executeBy, harnessOn, shared, urlOf } from "./harness.ts"

const databases = ["tenure_cells_1", "tenure_cells_2"] as const

const dropping = databases.map((name) => `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)

/**
 * Declares the tests of the ports that are routed to cells.
 *
 * @param runs - the number of inputs per property
 */
export const certifyCells = (runs: number): void => {
  beforeAll(() =>
    Effect.runPromise(
      execute(
        ...dropping,
        ...databases.map((name) => `CREATE DATABASE ${name} STRATEGY file_copy`),
      ),
    ),
  )
  afterAll(() => Effect.runPromise(execute(...dropping)))

  /** The tables in a schema of one of the databases. */
  const tablesIn = (database: string, schema: string) => {
    const client = clientLayer({ url: Redacted.make(urlOf(database)), maxConnections: 1 })
    return harnessOn(schema, client, executeBy(shared(client)))
  }

  // The home, and the two cells: the second server has the second one.
  const schemas = [
    tablesIn(databases[0], "tenure"),
    tablesIn(databases[0], "tenure_0"),
    tablesIn(databases[1], "tenure_1"),
  ]

  const onAll = <A>(work: (tables: (typeof schemas)[number]) => Effect.Effect<A>) =>
    Effect.asVoid(Effect.forEach(schemas, work))

  const stores = shared(
    postgres({
      servers: databases.map((name) => ({ name, url: urlOf(name) })),
      cells: 2,
    }),
  )

  // These ports remember nothing.
  storeSuite("cells on PostgreSQL", {
    layer: Layer.provideMerge(Layer.effectDiscard(onAll(({ empty }) => empty)), stores),
    hasSeveralDatabases: true,
    runs,
    advance: (millis) => onAll(({ advance }) => advance(millis)),
    ports: ["MembershipStore", "ApiKeyStore"],
  })
}
