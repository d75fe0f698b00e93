/** Kept plans for extensions that were made for nearly empty tables. */

import { planSuite } from "./keeping-plans.ts"

planSuite(["a few members"])
