/**
 * The one file beside another major version of Effect, which the root of the program then has: directly, or
 * through Prisma. Tenure needs a copy of its own there.
 */

import { execFileSync } from "node:child_process"
import { readFileSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { installedAsOne, packOne } from "./folders.js"

const neighbours = [
  ["npm", "effect@3"],
  ["npm", "prisma@7"],
  ["pnpm", "effect@3"],
]

const program = `
  import { createTenure } from "tenure"
  import { memory } from "tenure/memory"

  const tenure = await createTenure({ stores: memory() })
  await tenure.memberships.createProject("p1")
  await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: "2999-01-01T00:00:00.000Z" })
  await tenure.close()
`

const isBesideOther = (folder) => {
  const manifest = readFileSync(join(folder, "node_modules/effect/package.json"), "utf8")
  return !JSON.parse(manifest).version.startsWith("4.")
}

const file = packOne()
try {
  for (const [manager, neighbour] of neighbours) {
    const folder = installedAsOne(manager, file, [neighbour])
    try {
      if (!isBesideOther(folder)) throw new Error(`${neighbour} brings no other Effect to the root`)
      execFileSync(process.execPath, ["--input-type=module", "--eval", program], {
        cwd: folder,
        stdio: ["ignore", "ignore", "inherit"],
      })
    } finally {
      rmSync(folder, { recursive: true })
    }
  }
} finally {
  rmSync(dirname(file), { recursive: true })
}
