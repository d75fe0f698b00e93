/**
 * Makes the JavaScript that is published. A program imports it in half the time that a file for each module
 * would take. The files of the `exports` get what they export from the files made here, so that there is one
 * copy of everything. What is loaded only when it is asked for has files of its own.
 */

import { join } from "node:path"
import { defineConfig } from "rolldown"
import manifest from "./package.json" with { type: "json" }

/**
 * Which modules share a file: those that are loaded with a module, unless they are in a file before. Not the
 * modules of `exports`: a file that others import from exports more than its module does.
 */
const files = {
  // On its own for receivers of webhooks, which need nothing else.
  base: "src/webhooks/signature.ts",
  core: "src/index.ts",
}

const input = Object.fromEntries(
  Object.values(manifest.exports)
    .filter((paths) => typeof paths === "object")
    .map(({ "@tenure/source": source, default: file }) => [
      file.replace(/^\.\/dist\/(.*)\.js$/, "$1"),
      source,
    ]),
)

const peers = Object.keys(manifest.peerDependencies)

/** Returns the modules that are loaded with a module. */
const loadedWith = (id, graph, loaded = new Set()) => {
  if (loaded.has(id)) return loaded
  loaded.add(id)
  const imported = graph.getModuleInfo(id)?.importedIds ?? []
  for (const other of imported) loadedWith(other, graph, loaded)
  return loaded
}

let contents

const entries = new Set(Object.values(input).map((source) => join(import.meta.dirname, source)))

const fileOf = (id, graph) => {
  if (entries.has(id)) return undefined
  contents ??= Object.entries(files).map(([name, first]) => [
    name,
    loadedWith(join(import.meta.dirname, first), graph),
  ])
  return contents.find(([, modules]) => modules.has(id))?.[0]
}

export default defineConfig({
  input,
  external: (id) => peers.some((name) => id === name || id.startsWith(`${name}/`)),
  platform: "neutral",
  preserveEntrySignatures: "allow-extension",
  output: {
    dir: "dist",
    chunkFileNames: "[name].js",
    codeSplitting: {
      // The groups have them anyway.
      includeDependenciesRecursively: false,
      groups: [{ debugName: "files", name: fileOf }],
    },
  },
})
