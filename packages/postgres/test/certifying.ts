/** Certifies the stores on PostgreSQL, port by port, as a role that owns nothing, and cells in two databases. */

import { ports, storeSuite } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { beforeAll, inject } from "vitest"
import { migrate, postgres } from "../src/index.ts"
import { documentedRoles } from "./documented-roles.ts"
import {
  clientLayer,
  execute,
  executeBy,
  harnessOn,
  ownDatabase,
  renewed,
  shared,
  urlOf,
} from "./harness.ts"

const schema = "conformance"

const urlAs = (role: string, password: string) => {
  const url = new URL(inject("databaseUrl"))
  url.username = role
  url.password = password
  return Redacted.make(url.href)
}

// The database in `DATABASE_URL` may still have what an earlier run has left.
const drop = [
  `DROP SCHEMA IF EXISTS ${schema} CASCADE`,
  `DROP ROLE IF EXISTS ${schema}_app`,
  `DROP ROLE IF EXISTS ${schema}_owner`,
]

/**
 * Declares the tests for all ports.
 *
 * @param runs - inputs per property
 */
export const certifyPostgres = (runs: number): void => {
  beforeAll(() =>
    Effect.gen(function* () {
      const [create = [], ...later] = yield* Effect.promise(() => documentedRoles(schema))
      yield* execute(...drop, ...create)
      const owner = clientLayer({ url: urlAs(`${schema}_owner`, "change me") })
      yield* Effect.provide(migrate({ schema }), owner)
      yield* execute(...later.flat())
    }).pipe(Effect.runPromise),
  )

  const app = clientLayer({ url: urlAs(`${schema}_app`, "change me, too") })

  const harness = harnessOn(schema, app, executeBy(shared(clientLayer({ maxConnections: 1 }))))

  const onEmptied = <A, E, R>(stores: Layer.Layer<A, E, R>) =>
    Layer.provideMerge(Layer.effectDiscard(harness.empty), stores)

  // An outbox remembers what it has claimed, and a listener hears what another test does. Those of the other ports remember
  // nothing.
  storeSuite("postgres", {
    ...harness,
    runs,
    layer: onEmptied(renewed(schema, app)),
    ports: ["Outbox"],
  })
  storeSuite("postgres, opened once", {
    ...harness,
    runs,
    layer: onEmptied(shared(harness.layer)),
    ports: ports.filter((port) => port !== "Outbox"),
  })
}

const names = ["tenure_cells_1", "tenure_cells_2"] as const

/**
 * Declares tests for the ports that are routed to cells.
 *
 * @param runs - inputs per property
 */
export const certifyCells = (runs: number): void => {
  const [home, other] = [ownDatabase(names[0]), ownDatabase(names[1])]

  /** The tables in a schema in one database. */
  const tablesIn = (database: typeof home, name: string) => {
    const client = shared(clientLayer({ ...database, maxConnections: 1 }))
    return harnessOn(name, client, executeBy(client))
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
