/** The packages' modules, and which import which. */

import { existsSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { filesOf, read, root } from "./examples.ts"

/** An import by another module. */
export interface Edge {
  readonly from: string
  readonly to: string
  readonly kind: "lazy" | "type" | "value"
}

const sources = await filesOf("packages/*/{src,page}/**/*.{ts,tsx}")

/** All modules' paths from the repository's root. */
export const modules = sources.filter((path) => !path.endsWith(".d.ts"))

/** Returns a module's package, by its folder. */
export const packageOf = (path: string): string => path.split("/")[1] ?? ""

interface Manifest {
  readonly name: string
  readonly exports?: Readonly<Record<string, { readonly "@tenure/source"?: string } | null>>
}

const entries = new Map<string, string>()
for (const name of new Set(modules.map(packageOf))) {
  const manifest: Manifest = JSON.parse(read(`packages/${name}/package.json`))
  for (const [subpath, target] of Object.entries(manifest.exports ?? {})) {
    const source = target?.["@tenure/source"]
    if (source !== undefined) {
      entries.set(manifest.name + subpath.slice(1), join("packages", name, source))
    }
  }
}

const ofTenure = modules.filter((path) => /^packages\/tenure\/src\/[\w-]+\.ts$/.test(path))

/** Every path that can be imported. */
export const importPaths: ReadonlySet<string> = new Set([
  ...entries.keys(),
  // The manifest exports them by a pattern.
  ...ofTenure.map((path) => path.replace("packages/tenure/src", "tenure").replace(".ts", "")),
])

/** The modules that a package exports. */
export const entryPoints: ReadonlySet<string> = new Set(entries.values())

const resolve = (from: string, specifier: string): string | undefined => {
  if (!specifier.startsWith(".")) return entries.get(specifier)
  const path = relative(root, join(root, dirname(from), specifier))
  return existsSync(join(root, path)) && /\.tsx?$/.test(path) ? path : undefined
}

const statement =
  /^(?:import|export) (type )?(?:(\{[^}]*\}|\* as \w+|\*|\w+(?:, \{[^}]*\})?) from )?"([^"]+)"/gm
const lazy = /\bimport\("([^"]+)"\)/g

/** Whether all names between an import's braces are types. */
const areTypes = (names: string): boolean =>
  names.startsWith("{") &&
  names
    .slice(1, -1)
    .split(",")
    .map((name) => name.trim())
    .every((name) => name === "" || name.startsWith("type "))

const edgesOf = (from: string): ReadonlyArray<Edge> => {
  const text = read(from).replaceAll(/\/\*\*.*?\*\//gs, "")
  const edges: Array<Edge> = []
  const add = (specifier: string, kind: Edge["kind"]): void => {
    const to = resolve(from, specifier)
    if (to !== undefined && to !== from) edges.push({ from, to, kind })
  }
  for (const [, type, names = "", specifier = ""] of text.matchAll(statement)) {
    add(specifier, type !== undefined || areTypes(names) ? "type" : "value")
  }
  for (const [, specifier = ""] of text.matchAll(lazy)) add(specifier, "lazy")
  return edges
}

/** All modules' imports. */
export const edges: ReadonlyArray<Edge> = modules.flatMap(edgesOf)

/** Returns the imports by a key. */
export const groupBy = (
  given: ReadonlyArray<Edge>,
  keyOf: (edge: Edge) => string,
): ReadonlyMap<string, ReadonlyArray<Edge>> => {
  const groups = new Map<string, Array<Edge>>()
  for (const edge of given) {
    const group = groups.get(keyOf(edge))
    if (group === undefined) groups.set(keyOf(edge), [edge])
    else group.push(edge)
  }
  return groups
}

/** Returns the modules that import themselves through others, by the given imports. */
export const circularIn = (given: ReadonlyArray<Edge>): ReadonlyArray<string> => {
  const next = groupBy(given, ({ from }) => from)
  const importsItself = (path: string): boolean => {
    const reached = new Set<string>()
    const visit = (from: string): void => {
      for (const { to } of next.get(from) ?? []) {
        if (reached.has(to)) continue
        reached.add(to)
        visit(to)
      }
    }
    visit(path)
    return reached.has(path)
  }
  return [...next.keys()].filter(importsItself)
}
