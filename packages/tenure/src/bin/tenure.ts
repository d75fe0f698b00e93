#!/usr/bin/env node
import module from "node:module"
import { refusal } from "./node-version.ts"

const problem = refusal(process.versions.node)
if (problem !== undefined) {
  process.stderr.write(`${problem}\n`)
  process.exit(1)
}

// A short command spends most time compiling modules; this caches them.
module.enableCompileCache()

const { main } = await import("@tenure/cli")
main()
