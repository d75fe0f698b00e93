/** The feed while transactions run at the same time, in 20 orders. */

import { feedOrderSuite } from "./reading-feeds.ts"

feedOrderSuite(20)
