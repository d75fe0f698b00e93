/** Kept plans that were made for tables without members, or with one. The quick suite leaves these out. */

import { planSuite } from "./keeping-plans.ts"

planSuite(["empty tables", "a single member"])
