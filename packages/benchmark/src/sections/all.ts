/** All sections, in the order in which they are measured and shown. */

import type { Section } from "../measurement.ts"
import { decode } from "./decode.ts"
import { deliveries } from "./deliveries.ts"
import { deliveryCosts } from "./deliveryCosts.ts"
import { deliveryRates } from "./deliveryRates.ts"
import { expiry } from "./expiry.ts"
import { bulk, extensions } from "./extensions.ts"
import { feed } from "./feed.ts"
import { grants } from "./grants.ts"
import { growth } from "./growth.ts"
import { http } from "./http.ts"
import { httpPostgres } from "./httpPostgres.ts"
import { imports } from "./imports.ts"
import { limiter } from "./limiter.ts"
import { limiterPostgres } from "./limiterPostgres.ts"
import { limiterRedis } from "./limiterRedis.ts"
import { metrics } from "./metrics.ts"
import { mounted } from "./mounted.ts"
import { roundTrips } from "./roundTrips.ts"
import { signing } from "./signing.ts"
import { soak } from "./soak.ts"
import { start } from "./start.ts"
import { storage } from "./storage.ts"

/** All sections. */
export const sections: ReadonlyArray<Section> = [
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
  roundTrips,
  bulk,
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
