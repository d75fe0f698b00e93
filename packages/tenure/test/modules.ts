/** What the package re-exports: every module that the packages of its dependencies export. */

import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

const packages = new URL("../../", import.meta.url)

interface Manifest {
  readonly name: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, unknown>>
}

const manifestOf = (folder: string): Manifest =>
  JSON.parse(readFileSync(new URL(`${folder}/package.json`, packages), "utf8"))

/** The import paths of the packages that start otherwise here. */
const starts = new Map([
  ["core", ""],
  ["node-http", "/node"],
])

/** A module, by its import path in the package that has it and by the one in `tenure`. */
export interface Module {
  readonly original: string
  readonly here: string
}

const modulesOf = (folder: string): ReadonlyArray<Module> => {
  const { exports, name } = manifestOf(folder)
  return Object.keys(exports)
    .filter((path) => !path.startsWith("./bin/"))
    .map((path) => ({
      original: `${name}${path.slice(1)}`,
      here: `tenure${starts.get(folder) ?? `/${folder}`}${path.slice(1)}`,
    }))
}

/** All modules. */
export const modules = Object.keys(manifestOf("tenure").dependencies ?? {})
  // The command is no module to import.
  .filter((name) => name.startsWith("@tenure/") && name !== "@tenure/cli")
  .flatMap((name) => modulesOf(name.replace("@tenure/", "")))

/** The folder of the sources. */
export const sources = fileURLToPath(new URL("tenure/src", packages))

/** The source of a module. */
export const sourceOf = ({ here }: Module): string =>
  `${sources}/${here.replace(/^tenure\/?/, "") || "index"}.ts`
