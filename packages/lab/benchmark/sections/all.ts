/** All sections, in the order in which they are measured and shown. */

import type { Section } from "../measurement.ts"
import { bulkUpdate } from "./bulk-update.ts"
import { deliveryCosts } from "./delivery-costs.ts"
import { deliveryRates } from "./delivery-rates.ts"
import { expiry } from "./expiry.ts"
import { bulkLog, extensions, roundTrips } from "./extensions.ts"
import { feed } from "./feed.ts"
import { growth } from "./growth.ts"
import { folder, http, metrics, mounted } from "./http.ts"
import { imports } from "./imports.ts"
import { limiter, limiterPostgres, limiterRedis } from "./limiters.ts"
import { ownTable } from "./own-table.ts"
import { queues } from "./queues.ts"
import { start } from "./start.ts"
import { storage } from "./storage.ts"

/** All sections. */
export const sections: ReadonlyArray<Section> = [
  ownTable,
  queues,
  bulkUpdate,
  http,
  metrics,
  mounted,
  limiter,
  limiterPostgres,
  limiterRedis,
  extensions,
  imports,
  folder,
  roundTrips,
  bulkLog,
  deliveryRates,
  deliveryCosts,
  feed,
  expiry,
  growth,
  storage,
  start,
]
