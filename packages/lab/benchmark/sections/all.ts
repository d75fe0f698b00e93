/** All sections, in the order in which they are measured and shown. */

import type { Section } from "../measurement.ts"
import { bulkUpdate } from "./bulk-update.ts"
import { decode } from "./decode.ts"
import { deliveries } from "./deliveries.ts"
import { deliveryCosts } from "./delivery-costs.ts"
import { deliveryRates } from "./delivery-rates.ts"
import { expiry } from "./expiry.ts"
import { bulk, bulkLog, extensions } from "./extensions.ts"
import { feed } from "./feed.ts"
import { folder } from "./folder.ts"
import { grants } from "./grants.ts"
import { growth } from "./growth.ts"
import { httpPostgres } from "./http-postgres.ts"
import { http } from "./http.ts"
import { imports } from "./imports.ts"
import { limiterPostgres } from "./limiter-postgres.ts"
import { limiterRedis } from "./limiter-redis.ts"
import { limiter } from "./limiter.ts"
import { metrics } from "./metrics.ts"
import { mounted } from "./mounted.ts"
import { ownTable } from "./own-table.ts"
import { queues } from "./queues.ts"
import { roundTrips } from "./round-trips.ts"
import { signing } from "./signing.ts"
import { soak } from "./soak.ts"
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
  httpPostgres,
  extensions,
  grants,
  imports,
  folder,
  roundTrips,
  bulk,
  bulkLog,
  deliveries,
  deliveryRates,
  deliveryCosts,
  feed,
  expiry,
  growth,
  storage,
  start,
  decode,
  signing,
  soak,
]
