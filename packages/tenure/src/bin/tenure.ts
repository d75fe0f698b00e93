#!/usr/bin/env node
import { enableCompileCache } from "node:module"

// Most of the time that a short command takes, Node compiles modules.
enableCompileCache()

const { main } = await import("@tenure/cli")
main()
