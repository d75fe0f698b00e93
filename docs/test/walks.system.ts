/** How many modules one has to read to follow a request: those in which a function runs for it. */

import { beforeAll, describe, expect, inject, it } from "vitest"
import { root } from "./examples.ts"
import { freshDatabase, run } from "./programs.ts"

/** What `walk.ts` prints. */
interface Walks {
  readonly extension: ReadonlyArray<string>
  readonly poll: ReadonlyArray<string>
  readonly delivery: ReadonlyArray<string>
}

// Lower a bound when a walk gets shorter. A longer walk needs a reason: `field-names` checks arguments, `outages` follows
// the store of rate limits, and `expiry` of core says when a date was set.

const walk = async (url: string): Promise<Walks> =>
  JSON.parse(await run(`${root}docs/test/walk.ts`, { WALK_STORE: url }))

describe.each([
  { name: "memory", most: { extension: 33, poll: 29, delivery: 25 }, url: async () => "memory:" },
  {
    name: "PostgreSQL",
    most: { extension: 39, poll: 34, delivery: 30 },
    url: () => freshDatabase(inject("databaseUrl"), "docs_walks"),
  },
])("$name", ({ most, url }) => {
  let walks: Walks
  beforeAll(async () => {
    walks = await walk(await url())
  })

  for (const name of ["extension", "poll", "delivery"] as const) {
    it(`passes at most ${most[name]} modules: ${name}`, () => {
      expect(walks[name].length, walks[name].join("\n")).toBeLessThanOrEqual(most[name])
    })
  }
})
