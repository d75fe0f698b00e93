/** Certifies cells in two databases on one server. */

import { storeSuite } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { postgres } from "../src/index.ts"
import { clientLayer, executeBy, harnessOn, ownDatabase, shared, urlOf } from "./harness.ts"

const names = ["tenure_cells_1", "tenure_cells_2"] as const

/**
 * Declares tests for the ports that are routed to cells.
 *
 * @param runs - inputs per property
 */
export const certifyCells = (runs: number): void => {
  const [home, other] = [ownDatabase(names[0]), ownDatabase(names[1])]

  /** The tables in a schema in one database. */
  const tablesIn = (database: typeof home, schema: string) => {
    const client = shared(clientLayer({ ...database, maxConnections: 1 }))
    return harnessOn(schema, client, executeBy(client))
  }

  // The home, and the two cells: the second server has the second one.
  const schemas = [
    tablesIn(home, "tenure"),
    tablesIn(home, "tenure_0"),
    tablesIn(other, "tenure_1"),
  ]

  const onAll = <A>(work: (tables: (typeof schemas)[number]) => Effect.Effect<A>) =>
    Effect.asVoid(Effect.forEach(schemas, work))

  const stores = shared(
    postgres({ servers: names.map((name) => ({ name, url: urlOf(name) })), cells: 2 }),
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
