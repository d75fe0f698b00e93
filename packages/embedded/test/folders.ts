/** Folders for the tests of one file. */

import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll } from "vitest"

/** Makes a folder that is removed after the tests of the file. */
export const temporaryFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "tenure-embedded-"))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
