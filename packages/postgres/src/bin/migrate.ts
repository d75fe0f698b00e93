#!/usr/bin/env node
/** The command `tenure-postgres-migrate`. */

import { main } from "../ops/program.ts"

// Optional, because only folders need it. It depends on this package, so it cannot be a dependency.
const embedded: string = "@tenure/embedded"

await main(() => import(embedded))
