/**
 * Packs the package `tenure` with all packages of the repository in it, so that a program can install
 * Tenure from one file. Writes `tenure-VERSION.tgz` into the folder that is the argument.
 */

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { packAll, run } from "./folders.js"

const readManifest = (folder) => JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))

const writeManifest = (folder, manifest) =>
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest))

/** Unpacks a tarball into a new folder, and returns its manifest. */
const unpack = (tarball, folder) => {
  mkdirSync(folder, { recursive: true })
  run(folder, "tar", "-xzf", tarball, "--strip-components=1")
  return readManifest(folder)
}

/**
 * Returns the manifest of a bundled package without what it depends on. npm looks in the tarball for
 * everything on which a bundled package depends, unless the root of the program has it in a fitting version.
 */
const bundledManifest = ({
  dependencies: _,
  peerDependencies: _peers,
  peerDependenciesMeta: _meta,
  ...manifest
}) => manifest

/** Adds the packages of the repository on which an unpacked package depends. */
const bundle = (folder, manifest, tarballs) => {
  const names = Object.keys(manifest.dependencies).filter((name) => name in tarballs)
  const bundled = names.map((name) => {
    const inside = join(folder, "node_modules", name)
    const own = unpack(tarballs[name], inside)
    writeManifest(inside, bundledManifest(own))
    return own
  })
  // The peers are in the manifest already.
  const dependencies = Object.assign({}, ...[...bundled, manifest].map((one) => one.dependencies))
  // Some package managers look for bundled dependencies in the registry.
  for (const name of names) delete dependencies[name]
  writeManifest(folder, { ...manifest, dependencies, bundleDependencies: names })
}

const destination = resolve(process.argv[2] ?? ".")
const temporary = mkdtempSync(join(tmpdir(), "tarball-"))
try {
  const tarballs = packAll(temporary)
  const folder = join(temporary, "package")
  const manifest = unpack(tarballs.tenure, folder)
  bundle(folder, manifest, tarballs)
  mkdirSync(destination, { recursive: true })
  const file = join(destination, `tenure-${manifest.version}.tgz`)
  run(temporary, "tar", "-czf", file, "package")
  process.stdout.write(`Install it with: npm install ${file}\n`)
} finally {
  rmSync(temporary, { recursive: true })
}
