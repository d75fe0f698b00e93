/** Kept plans of extensions that were made for tables without members, or with one, which the quick suite leaves out. */

import { planSuite } from "./keeping-plans.ts"

planSuite(["empty tables", "a single member"])
