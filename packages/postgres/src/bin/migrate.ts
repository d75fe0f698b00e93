#!/usr/bin/env node
/** The command `tenure-postgres-migrate`. */

import { main } from "../ops/program.ts"

// Only installed where a folder is used; it depends on this package, so it is no dependency.
const embedded: string = "@tenure/embedded"

await main(() => import(embedded))
