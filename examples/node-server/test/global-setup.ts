/**
 * Bundles the server as `npm start` does, once for all tests. With `SERVER_FILE`, they run that one, such
 * as the result of `npm run build`.
 */

import { execFile } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import type { TestProject } from "vitest/node"

declare module "vitest" {
  interface ProvidedContext {
    readonly serverFile: string
  }
}

export default async (project: TestProject): Promise<(() => Promise<void>) | undefined> => {
  const given = process.env["SERVER_FILE"]
  if (given !== undefined) {
    project.provide("serverFile", given)
    return undefined
  }
  const cwd = fileURLToPath(new URL("..", import.meta.url))
  // Where it finds what is not in its file.
  const folder = await mkdtemp(join(cwd, "node_modules", ".tenure-"))
  await promisify(execFile)("npm", ["run", "bundle", "--", `--outdir=${folder}`], { cwd })
  project.provide("serverFile", join(folder, "server.mjs"))
  return () => rm(folder, { recursive: true })
}
