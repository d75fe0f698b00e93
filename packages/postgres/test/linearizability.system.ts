/** Two processes' concurrent operations are linearizable, in four times as many histories as in the quick suite. */

import { linearizabilitySuite } from "./concurrent-operations.ts"

linearizabilitySuite(400)
