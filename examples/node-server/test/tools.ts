/** Programs for tests: installed ones, or else those in a package, unpacked once and kept for the next run. */

import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { mkdtemp, rename, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"

export const run = promisify(execFile)

/** How to find a program. */
interface Search {
  readonly name: string
  /** Returns the path of the installed program, if there is one. */
  readonly installed: () => Promise<string | undefined>
  /** Downloads and unpacks a package into a folder. Returns the path of the program in it. */
  readonly unpack: (folder: string) => Promise<string>
  /** Rejects if the program at a path does not run. */
  readonly check: (path: string) => Promise<unknown>
}

/** Finds a program. Returns its path, or why there is none. */
const find = async ({ check, installed, name, unpack }: Search) => {
  const kept = join(tmpdir(), `tenure-${name}`)
  const path = await installed()
  if (path !== undefined) return { path }
  try {
    if (!existsSync(kept)) {
      const folder = await mkdtemp(`${kept}-`)
      try {
        // In one step, so that an interruption leaves no half of it. Another process may have been quicker.
        await rename(await unpack(folder), kept).catch((error: unknown) => {
          if (!existsSync(kept)) throw error
        })
      } finally {
        await rm(folder, { recursive: true, force: true })
      }
    }
    await check(kept)
    return { path: kept }
  } catch (error) {
    return { reason: String(error).split("\n")[0] ?? "" }
  }
}

/** Finds a program. If there is none, its tests are skipped, or fail in CI. */
export const findTool = async (search: Search) => {
  const found = await find(search)
  return {
    /** Why it is missing, if tests are to be skipped. */
    missing: "reason" in found && process.env["CI"] === undefined ? found.reason : undefined,
    path: (): string => {
      if ("reason" in found) throw new Error(`there is no ${search.name}: ${found.reason}`)
      return found.path
    },
  }
}
