/** Folders with databases. */

import { cpSync, existsSync, mkdtempSync, renameSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { createTenure } from "@tenure/core"
import { expect } from "vitest"
import { openEngine } from "../src/engine.ts"
import { lockFolder } from "../src/folder.ts"
import { embedded } from "../src/index.ts"

const cache = fileURLToPath(new URL("../node_modules", import.meta.url))

/** Makes an empty folder. */
export const temporaryFolder = (): string => mkdtempSync(join(tmpdir(), "tenure-embedded-"))

/** Makes a folder with a database, which is empty. To create one takes seconds, so they are copied. */
export const folderWithDatabase = async (): Promise<string> => {
  const model = join(cache, ".empty-folder")
  if (!existsSync(model)) {
    const created = mkdtempSync(join(cache, ".database-"))
    const folder = await lockFolder(created)
    await (await openEngine(folder, false)).close()
    folder.release()
    // Another process may have been faster.
    if (!existsSync(model)) renameSync(created, model)
  }
  const folder = temporaryFolder()
  cpSync(model, folder, { recursive: true })
  return folder
}

/** Opens a folder, without waiting for the disk, and without deliveries. */
export const open = (path: string) =>
  createTenure({ stores: embedded({ path, durable: false }), webhooks: { dispatch: false } })

/** Copies a folder, as one that no process has used. */
export const copyOf = (model: string): string => {
  const path = join(temporaryFolder(), "data")
  cpSync(model, path, { recursive: true })
  return path
}

/** Expects that a folder can be opened, and has no projects. */
export const expectEmpty = async (path: string): Promise<void> => {
  const tenure = await open(path)
  expect(await tenure.memberships.listProjects()).toEqual([])
  await tenure.close()
}
