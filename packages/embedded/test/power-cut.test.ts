/** What becomes of a folder whose machine loses power. */

import fs from "node:fs"
import { join, relative } from "node:path"
import { createTenure } from "@tenure/core"
import { expect, it, vi } from "vitest"
import { embedded } from "../src/index.ts"
import { folderWithDatabase, temporaryFolder } from "./folders.ts"

const member = { projectId: "p1", userId: "1001" }

/** Copies of a folder's files, made whenever it waits for the disk: the least that a power cut leaves. */
const keepDurable = (folder: string, copy: string): void => {
  fs.cpSync(folder, copy, { recursive: true })
  const { fsyncSync } = fs
  vi.spyOn(fs, "fsyncSync").mockImplementation((file) => {
    fsyncSync(file)
    const path = fs.readlinkSync(`/proc/self/fd/${file}`)
    const kept = join(copy, relative(folder, path))
    if (fs.fstatSync(file).isFile()) fs.copyFileSync(path, kept)
    else {
      const names = fs.readdirSync(path)
      const gone = fs.readdirSync(kept).filter((name) => !names.includes(name))
      for (const name of gone) fs.rmSync(join(kept, name), { recursive: true })
      for (const name of names) {
        if (fs.statSync(join(path, name)).isDirectory())
          fs.mkdirSync(join(kept, name), { recursive: true })
        else fs.closeSync(fs.openSync(join(kept, name), "a"))
      }
    }
  })
}

it.runIf(fs.existsSync("/proc/self/fd"))(
  "a power cut takes nothing that was answered",
  async () => {
    const path = await folderWithDatabase()
    const copy = join(temporaryFolder(), "copy")
    keepDurable(path, copy)
    const tenure = await createTenure({ stores: embedded({ path }) })
    await tenure.memberships.createProject("p1")
    await tenure.memberships.grant({ ...member, endDate: 4_000_000_000_000 })
    await tenure.memberships.extend({ ...member, endDate: 4_100_000_000_000 })

    vi.restoreAllMocks()
    const again = await createTenure({ stores: embedded({ path: copy }) })
    expect(await again.memberships.find(member)).toMatchObject({ endDate: 4_100_000_000_000 })
    await again.close()
    await tenure.close()
  },
)
