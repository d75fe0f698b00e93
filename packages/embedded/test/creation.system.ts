/** A database that is created anew, which takes seconds: the quick suite copies an empty one. */

import fs from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { expectEmpty, temporaryFolder } from "./folders.ts"

it("a database whose creation was interrupted is created again", async () => {
  const folder = temporaryFolder()
  fs.mkdirSync(join(folder, "database.new"))
  fs.writeFileSync(join(folder, "database.new", "PG_VERSION"), "18\n")
  await expectEmpty(folder)
  expect(fs.readdirSync(folder).toSorted()).toEqual(["database", "lock", "pid"])
})
