/** Two processes' concurrent operations are linearizable. */

import { linearizabilitySuite } from "./concurrent-operations.ts"

linearizabilitySuite(100)
