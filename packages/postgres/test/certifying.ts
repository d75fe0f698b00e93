/** Certifies the stores on PostgreSQL, port by port, as a role that owns nothing. */

import { ports, storeSuite } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { beforeAll, inject } from "vitest"
import { migrate } from "../src/index.ts"
import { documentedRoles } from "./documented-roles.ts"
import { clientLayer, execute, executeBy, harnessOn, renewed, shared } from "./harness.ts"

const schema = "conformance"

const urlOf = (role: string, password: string) => {
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
      const owner = clientLayer({ url: urlOf(`${schema}_owner`, "change me") })
      yield* Effect.provide(migrate({ schema }), owner)
      yield* execute(...later.flat())
    }).pipe(Effect.runPromise),
  )

  const app = clientLayer({ url: urlOf(`${schema}_app`, "change me, too") })

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
