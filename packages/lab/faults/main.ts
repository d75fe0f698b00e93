/** Runs a scenario: `main.ts NAME`, with its options. Fails if something is not as it has to be. */

import { makeStage } from "./world/stage.ts"

const scenarios = {
  behind: () => import("./scenarios/behind.ts"),
  cells: () => import("../cells/cells.ts"),
  failover: () => import("../failover/failover.ts"),
  faults: () => import("./scenarios/seeds.ts"),
  folders: () => import("./scenarios/folders.ts"),
  payments: () => import("./scenarios/payments.ts"),
  repeating: () => import("./scenarios/repeating.ts"),
  restarts: () => import("./scenarios/restarts.ts"),
} as const

const [name = "", ...args] = process.argv.slice(2)
const load = new Map(Object.entries(scenarios)).get(name)
if (load === undefined) throw new Error(`There is no scenario "${name}"`)

// What is registered for the exit then removes what was started.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130))

const { run } = await load()
const stage = makeStage()
const isSound = await run(stage, args)
await stage.end()
process.exit(isSound ? 0 : 1)
