/** The feed while transactions run at the same time, in 60 orders, of which the quick suite tries 20. */

import { feedOrderSuite } from "./reading-feeds.ts"

feedOrderSuite(60)
