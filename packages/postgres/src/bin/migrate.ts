#!/usr/bin/env node
import { main } from "../ops/program.ts"

// Only who has a folder installs it, and it depends on this package.
const embedded: string = "@tenure/embedded"

await main(() => import(embedded))
