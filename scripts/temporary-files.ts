/** Keeps temporary test files in one folder, because killed programs leave some behind. */

import { chmod, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"

export default async (): Promise<() => Promise<void>> => {
  const folder = await mkdtemp(join(tmpdir(), "tenure-tests-"))
  // PostgreSQL runs as another user.
  await chmod(folder, 0o755)
  process.env["TMPDIR"] = folder
  return () => rm(folder, { recursive: true, force: true })
}
