/** The migration program, bundled into one file with everything but PGlite. */

import { main } from "@tenure/postgres/ops/program"

await main(() => import("@tenure/embedded"))
