/** A server for the API whose memberships are the host's subscriptions. */

import { PgClient } from "@effect/sql-pg"
import { createTenure } from "@tenure/core"
import { nodeTransport, serve } from "@tenure/node-http"
import { postgresLayer } from "@tenure/postgres"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "./schema.ts"
import * as SubscriptionStore from "./subscription-store.ts"

const { DATABASE_URL = "postgres://localhost:5432/app", PORT = "3000" } = process.env

const client = PgClient.layer({
  url: Redacted.make(DATABASE_URL),
  connectTimeout: "2 seconds",
  // A statement waits at most 5 seconds for a locked row.
  startupParameters: { lock_timeout: "5s" },
})

const tables = postgresLayer().pipe(Layer.provideMerge(Schema.layer), Layer.provideMerge(client))

const tenure = await createTenure({
  // The later store replaces the earlier store's memberships.
  stores: [tables, SubscriptionStore.layer],
  transport: nodeTransport,
})
await tenure.memberships.createProject("acme")
const { token } = await tenure.apiKeys.issue({ projects: ["acme"] })
const server = await serve(tenure, { port: Number(PORT) })
process.stdout.write(`Tenure listens on ${server.url}\nAuthorization: Bearer ${token}\n`)

process.once("SIGTERM", async () => {
  await server.close()
  await tenure.close()
})
