/** Concurrent operations of two processes are linearizable. */

import { linearizabilitySuite } from "./concurrent-operations.ts"

linearizabilitySuite(100)
