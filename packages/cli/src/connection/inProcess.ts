/** The API in this process, on a database. Loaded only when a command uses one. */

import { userInfo } from "node:os"
import * as Tenure from "@tenure/core/Tenure"
import { client } from "@tenure/embedded"
import { fetchHandler } from "@tenure/fetch"
import { nodeTransport } from "@tenure/node-http"
import { layer, postgres } from "@tenure/postgres"
import * as Databases from "@tenure/postgres/bin/databases"
import * as Secrets from "@tenure/postgres/bin/secrets"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { failed, Failure, usage } from "../Failure.ts"
import { pathOf, requireDatabase } from "./folder.ts"
import type { Database } from "./Place.ts"

const isTagged = (fault: unknown): fault is { readonly _tag: string; readonly message: string } =>
  fault instanceof Error && "_tag" in fault

/** Says what is wrong with a database that cannot be used. */
export const explain = (fault: unknown): Failure => {
  if (!isTagged(fault)) return failed(String(fault))
  switch (fault._tag) {
    case "InvalidInput":
      return usage(fault.message)
    case "SchemaMismatch":
      return failed(fault.message)
    case "FolderUnusable":
    case "DatabaseUnusable":
      return new Failure({ kind: "unavailable", message: fault.message })
    default:
      return failed(fault.message)
  }
}

const storesOf = Effect.fnUntraced(function* ({
  schema,
  url,
}: Database): Effect.fn.Return<Layer.Layer<Tenure.Stores, unknown>, Failure> {
  yield* requireDatabase(url)
  // Whoever mistypes the schema is told so, and gets no tables there.
  const settings = { schema, migrate: false, maxConnections: 2 }
  const path = pathOf(url)
  if (path !== undefined) return Layer.provide(layer(settings), client({ path }))
  const map = Databases.pathOf(url)
  if (map === undefined) return postgres({ ...settings, url })
  const all = yield* Effect.mapError(Databases.read(map), explain)
  return postgres(all.map((one) => ({ ...one, ...settings })))
})

// The audit trail names whoever ran the command.
const identity = { keyId: `tenure:${userInfo().username}`, projects: "all", role: "admin" } as const

// Those who send to it check its address.
const everywhere = ["0.0.0.0/0", "::/0"]

// The owner of the database is not limited.
const unlimited = {
  perKey: { limit: 1_000_000, window: "1 second" },
  perAddress: false,
  burst: { limit: 1_000_000, window: "1 second" },
  suspension: false,
} as const

const ignore = () => undefined

/**
 * Opens a database, and returns what answers requests in place of `fetch`, until the scope closes. It
 * sends no notifications: the servers on the database do.
 */
export const open = Effect.fnUntraced(function* (place: Database) {
  const stores = yield* storesOf(place)
  const encryption = yield* Effect.mapError(Secrets.keys, explain)
  const tenure = yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: () =>
        Tenure.make({
          stores,
          transport: nodeTransport,
          authenticate: () => identity,
          rateLimits: unlimited,
          webhooks: { dispatch: false, encryption, allowedNetworks: everywhere },
          logger: { info: ignore, warn: ignore, error: ignore },
        }),
      catch: explain,
    }),
    ({ close }) => Effect.promise(close),
  )
  const answer = fetchHandler(tenure)
  return async (...[input, init]: Parameters<typeof fetch>): Promise<Response> =>
    (await answer(new Request(input, init))) ?? Response.error()
})
