/** The suites of the ports, over shards that are databases of one server. */

import { shardsLayer } from "@tenure/core/internal"
import { storeSuite } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { afterAll, beforeAll, inject } from "vitest"
import { migrate } from "../src/index.ts"
import { clientLayer, execute, executeBy, harnessOn, shared } from "./harness.ts"

const databases = ["tenure_shard_home", "tenure_shard_other"] as const

const clientOf = (database: string, maxConnections: number) => {
  const url = new URL(inject("databaseUrl"))
  url.pathname = database
  return clientLayer({ url: Redacted.make(url.href), maxConnections })
}

const dropping = databases.map((name) => `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)

beforeAll(() =>
  Effect.gen(function* () {
    yield* execute(...dropping, ...databases.map((name) => `CREATE DATABASE ${name}`))
    for (const name of databases) yield* Effect.provide(migrate(), clientOf(name, 1))
  }).pipe(Effect.runPromise),
)
afterAll(() => Effect.runPromise(execute(...dropping)))

const harnessOf = (database: string) =>
  harnessOn("tenure", {
    stores: clientOf(database, 10),
    migrate: false,
    run: executeBy(shared(clientOf(database, 1))),
  })

const [home, other] = [harnessOf(databases[0]), harnessOf(databases[1])]

const layer = shardsLayer([
  { name: "home", projects: ["p1"], stores: home.layer },
  { name: "other", projects: "others", stores: other.layer },
])

const harness = {
  layer,
  hasSeveralDatabases: true,
  // What the shards are made of is tried more often, each by itself.
  runs: 10,
  advance: (millis: number) => Effect.andThen(home.advance(millis), other.advance(millis)),
}

// These ports remember nothing.
storeSuite("shards on PostgreSQL, of which the home has one project", {
  ...harness,
  layer: Layer.provideMerge(
    Layer.effectDiscard(Effect.andThen(home.empty, other.empty)),
    shared(layer),
  ),
  ports: ["MembershipStore", "ApiKeyStore"],
})
