/** Folders with databases. */

import { cpSync, existsSync, mkdtempSync, renameSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { openEngine } from "../src/engine.ts"
import { lockFolder } from "../src/folder.ts"

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
