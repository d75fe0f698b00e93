/** The stores for the server's data, and for rate limits on Redis. */

import type { StorePorts } from "@tenure/core/store"
import { embedded } from "@tenure/embedded"
import { memory } from "@tenure/memory"
import { type PostgresOptions, postgres } from "@tenure/postgres"
import { readServers } from "@tenure/postgres/ops/upkeep"
import { redisLimits } from "@tenure/redis"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { logInfo, logWarning, reasonsOf } from "./log.ts"
import type { Settings } from "./settings.ts"
import { startErrorFromDatabase } from "./start-error.ts"

/** Connects to Redis. The library is loaded only here. */
const connectToRedis = async (url: Redacted.Redacted) => {
  const { Redis } = await import("ioredis")
  const client = new Redis(Redacted.value(url))
  // The client connects again and again, but an outage is logged once.
  let isLost = false
  client.on("error", (error) => {
    if (!isLost) logWarning("Redis cannot be reached", reasonsOf(error))
    isLost = true
  })
  client.on("ready", () => {
    if (isLost) logInfo("Redis is connected again")
    isLost = false
  })
  return client
}

/** Provides the store for rate limits at a URL, or none. */
export const redisLimitsLayer = (url: Redacted.Redacted | undefined) =>
  url === undefined
    ? Layer.empty
    : Layer.unwrap(
        Effect.acquireRelease(
          Effect.promise(() => connectToRedis(url)),
          (client) => Effect.sync(() => client.disconnect()),
        ).pipe(Effect.map((client) => redisLimits({ client }))),
      )

/** Provides the stores on several servers. */
const severalServersLayer = (path: string, shared: PostgresOptions) =>
  Layer.unwrap(Effect.map(readServers(path), (servers) => postgres({ servers, ...shared }))).pipe(
    Layer.catchTag("InvalidInput", (error) =>
      Layer.effectContext(Effect.fail(startErrorFromDatabase(error))),
    ),
  )

type StoreError = Layer.Error<
  ReturnType<typeof severalServersLayer | typeof postgres | typeof embedded>
>

/** Provides the stores in the place that the settings name. */
export const storesLayer = (settings: Settings): Layer.Layer<StorePorts, StoreError> => {
  const { auditRetention, databaseUrl, eventRetention, failedRetention, schema } = settings
  const ofDatabase = { schema, eventRetention, failedRetention, auditRetention }
  switch (databaseUrl._tag) {
    case "Memory":
      return memory()
    case "Folder":
      return embedded({ path: databaseUrl.path, ...ofDatabase })
    case "Server": {
      const { listenUrl, maxConnections, migrate } = settings
      return postgres({ url: databaseUrl.url, ...ofDatabase, migrate, maxConnections, listenUrl })
    }
    case "Servers": {
      const { maxConnections, migrate } = settings
      return severalServersLayer(databaseUrl.path, { ...ofDatabase, migrate, maxConnections })
    }
  }
}
