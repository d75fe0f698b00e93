/** Bundles the server as `npm start` does, once for all tests. */

import { execFile } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import type { TestProject } from "vitest/node"

declare module "vitest" {
  interface ProvidedContext {
    readonly serverFile: string
  }
}

export default async (project: TestProject): Promise<() => Promise<void>> => {
  const folder = await mkdtemp(join(tmpdir(), "tenure-"))
  const serverFile = join(folder, "server.mjs")
  const cwd = fileURLToPath(new URL("..", import.meta.url))
  await promisify(execFile)("npm", ["run", "bundle", "--", `--outfile=${serverFile}`], { cwd })
  project.provide("serverFile", serverFile)
  return () => rm(folder, { recursive: true })
}
