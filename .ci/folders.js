/** Folders outside the repository, with the packages as they would be published. */

import { execFileSync } from "node:child_process"
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { packages, root } from "./repository.js"

/** Runs a command to its end; throws if it fails. */
export const run = (cwd, command, ...args) =>
  execFileSync(command, args, { cwd, stdio: ["ignore", "ignore", "inherit"] })

/** Builds and packs every package into a folder, and returns the tarballs by the packages' names. */
export const packAll = (folder) => {
  const names = packages.map(({ manifest }) => manifest.name)
  const filters = names.flatMap((name) => ["--filter", name])
  const pnpm = ["--yes", "pnpm@12.21.0", "--recursive", ...filters, "--loglevel=error"]
  run(root, "npx", "tsc", "-b", "packages")
  run(root, "npx", ...pnpm, "pack", "--pack-destination", folder)
  return Object.fromEntries(
    packages.map(({ manifest: { name, version } }) => {
      const file = `${name.replace("@", "").replace("/", "-")}-${version}.tgz`
      return [name, join(folder, file)]
    }),
  )
}

const temporary = () => mkdtempSync(join(tmpdir(), "installed-"))

const install = (folder, dependencies) => {
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }')
  const quietly = ["--no-audit", "--no-fund", "--loglevel=error"]
  run(folder, "npm", "install", ...quietly, ...dependencies)
  return folder
}

/** Makes a folder in which packages of the repository, by name, and others are installed. */
export const installed = (names, others) => {
  const folder = temporary()
  const tarballs = packAll(folder)
  return install(folder, [...others, ...names.map((name) => tarballs[name])])
}

/** Makes a folder in which the one tarball and other packages are installed. */
export const installedAsOne = (others) => {
  const folder = temporary()
  run(root, "npm", "run", "tarballs", "--", folder)
  const [{ version }] = packages.map((one) => one.manifest)
  return install(folder, [...others, `./tenure-${version}.tgz`])
}
