/** How many modules one has to read to follow a request: those in which a function runs for it. */

import { expect, inject, it } from "vitest"
import { root } from "./examples.ts"
import { freshDatabase, run } from "./programs.ts"

// Lower a bound when a walk gets shorter. A longer walk needs a reason: each file has one subject, such as the body of a
// request, routing, a cache of empty buckets, or the connections of a pool; and operations are declared in `api`.
it.each([
  { name: "memory", most: { extension: 45, poll: 37, delivery: 26 }, url: async () => "memory:" },
  {
    name: "PostgreSQL",
    most: { extension: 53, poll: 46, delivery: 36 },
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
