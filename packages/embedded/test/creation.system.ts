/** A database that is created anew, which takes seconds: the quick suite copies an empty one. */

import fs from "node:fs"
import { join } from "node:path"
import { createTenure } from "@tenure/core"
import { expect, it } from "vitest"
import { embedded } from "../src/index.ts"
import { temporaryFolder } from "./folders.ts"

it("a database whose creation was interrupted is created again", async () => {
  const folder = temporaryFolder()
  fs.mkdirSync(join(folder, "database.new"))
  fs.writeFileSync(join(folder, "database.new", "PG_VERSION"), "18\n")
  const tenure = await createTenure({
    stores: embedded({ path: folder, durable: false }),
    webhooks: { dispatch: false },
  })
  expect(await tenure.memberships.listProjects()).toEqual([])
  await tenure.close()
  expect(fs.readdirSync(folder).toSorted()).toEqual(["database", "lock", "pid"])
})
