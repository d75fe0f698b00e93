/** Many histories at Stripe. The quick suite runs a few. */

import { it } from "vitest"
import { expectSameEndDate } from "./any-order.ts"

it("any order and repetition of events leads to the same end date", () => expectSameEndDate(60))
