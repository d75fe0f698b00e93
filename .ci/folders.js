/** Folders outside the repository, with the packages as they would be published. */

import { execFileSync } from "node:child_process"
import { mkdtempSync, readdirSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

export const root = fileURLToPath(new URL("..", import.meta.url))

const run = (cwd, command, ...args) =>
  execFileSync(command, args, { cwd, stdio: ["ignore", "ignore", "inherit"] })

/** Makes a folder in which the given packages of the repository, and others, are installed. */
export const installed = (packages, others) => {
  const folder = mkdtempSync(join(tmpdir(), "installed-"))
  run(root, "npm", "run", "tarballs", "--", folder)
  const tarballs = readdirSync(folder).filter((file) =>
    packages.some((name) => file.startsWith(`tenure-${name}-`)),
  )
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }')
  const quietly = ["--no-audit", "--no-fund", "--loglevel=error"]
  run(folder, "npm", "install", ...quietly, ...others, ...tarballs)
  return folder
}
