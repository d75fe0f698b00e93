/** The program of the bundled server, as `npm start` runs it. */

import { execFile } from "node:child_process"
import { rmSync } from "node:fs"
import { mkdtemp, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
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

/** Writes a seed file beside the program. Returns its path. */
export const writeSeed = async (program: string, seed: object): Promise<string> => {
  const file = join(dirname(program), "seed.json")
  await writeFile(file, JSON.stringify(seed))
  return file
}
