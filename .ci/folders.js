/** Folders outside the repository, with the packages as they would be published. */

import { execFileSync } from "node:child_process"
import { mkdtempSync, readdirSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { packages, root } from "./repository.js"

/** Runs a command to its end; throws if it fails. */
export const run = (cwd, command, ...args) =>
  execFileSync(command, args, { cwd, stdio: ["ignore", "ignore", "inherit"] })

/** Packs every package, as it was built, into a folder. */
export const packInto = (folder) => {
  const filters = packages.flatMap(({ manifest }) => ["--filter", manifest.name])
  const pnpm = ["--yes", "pnpm@12.21.0", "--recursive", ...filters, "--loglevel=error"]
  run(root, "npx", ...pnpm, "pack", "--pack-destination", folder)
}

/**
 * Returns the tarballs of all packages by the packages' names: those in the folder that `PACKED` names,
 * or new ones in the given folder.
 */
export const packAll = (given) => {
  const folder = process.env.PACKED ?? given
  if (process.env.PACKED === undefined) {
    run(root, "npm", "run", "compile")
    packInto(folder)
  }
  return Object.fromEntries(
    packages.map(({ manifest: { name, version } }) => {
      const file = `${name.replace("@", "").replace("/", "-")}-${version}.tgz`
      return [name, join(folder, file)]
    }),
  )
}

const temporary = () => mkdtempSync(join(tmpdir(), "installed-"))

const installers = {
  npm: ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"],
  pnpm: ["npx", "--yes", "pnpm@12.21.0", "add", "--silent"],
}

const install = (folder, manager, dependencies) => {
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }')
  run(folder, ...installers[manager], ...dependencies)
  return folder
}

/** Makes a folder in which packages of the repository, by name, and others are installed. */
export const installed = (names, others) => {
  const folder = temporary()
  const tarballs = packAll(folder)
  return install(folder, "npm", [...others, ...names.map((name) => tarballs[name])])
}

/** Packs everything into one file in a new folder, and returns its path. */
export const packOne = () => {
  const folder = temporary()
  run(root, "npm", "run", "tarballs", "--", folder)
  const [file] = readdirSync(folder)
  return join(folder, file)
}

/** Makes a folder in which a package manager has installed the one file and other packages. */
export const installedAsOne = (manager, file, others) =>
  install(temporary(), manager, [file, ...others])
