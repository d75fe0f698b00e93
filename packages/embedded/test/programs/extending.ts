/** Extends a membership again and again, and prints each end date that has been answered: its folder is the argument. */

import * as Tenure from "@tenure/core/Tenure"
import { embedded } from "@tenure/embedded"

const path = process.argv[2] ?? ""
const print = (endDate: number) => process.stdout.write(`${endDate}\n`)

const member = { projectId: "p1", userId: "1001" }

const tenure = await Tenure.make({ stores: embedded({ path }) })
await tenure.memberships.createProject("p1")
const found = await tenure.memberships.find(member).catch(() => ({ endDate: 4_000_000_000_000 }))
print(found.endDate)
await tenure.memberships.grant({ ...member, endDate: found.endDate + 1 })
for (let endDate = found.endDate + 1; ; endDate++) {
  print(endDate)
  await tenure.memberships.extend({ ...member, endDate: endDate + 1 })
}
