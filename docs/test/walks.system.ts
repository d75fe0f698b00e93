/** How many modules one has to read to follow a request: those in which a function runs for it. */

import { expect, inject, it } from "vitest"
import { root } from "./examples.ts"
import { freshDatabase, run } from "./programs.ts"

// Lower a bound when a walk gets shorter. A longer walk needs a reason: `field-names` checks arguments, `outages`
// follows the rate limit store, and `expiry` in core says when a date was set.
it.each([
  { name: "memory", most: { extension: 33, poll: 29, delivery: 25 }, url: async () => "memory:" },
  {
    name: "PostgreSQL",
    most: { extension: 39, poll: 34, delivery: 30 },
    url: () => freshDatabase(inject("databaseUrl"), "docs_walks"),
  },
])("walks pass few modules: $name", async ({ most, url }) => {
  const printed = await run(`${root}docs/test/walk.ts`, { WALK_STORE: await url() })
  const walks: Readonly<Record<string, ReadonlyArray<string>>> = JSON.parse(printed)
  for (const [name, bound] of Object.entries(most)) {
    const passed = walks[name] ?? []
    expect(passed, name).not.toEqual([])
    expect(passed.length, passed.join("\n")).toBeLessThanOrEqual(bound)
  }
})
