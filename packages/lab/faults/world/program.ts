/** The program of the bundled server, as `npm start` runs it. */

import { execFile } from "node:child_process"
import { rmSync } from "node:fs"
import { mkdtemp } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const cwd = fileURLToPath(new URL("../../../../examples/node-server", import.meta.url))

/** Bundles the server into a file that is removed when this process ends. */
export const bundled = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "tenure-server-"))
  process.on("exit", () => rmSync(folder, { recursive: true }))
  await promisify(execFile)("npm", ["run", "bundle", "--", `--outdir=${folder}`], { cwd })
  return join(folder, "server.mjs")
}
