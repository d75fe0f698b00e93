/** The feed while transactions run at the same time, in 60 orders. The quick suite tries 20. */

import { feedOrderSuite } from "./reading-feeds.ts"

feedOrderSuite(60)
