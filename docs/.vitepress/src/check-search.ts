/** Checks that the built site's search finds guides by words missing in them. */

import { globSync } from "node:fs"
import { join } from "node:path"
import MiniSearch from "minisearch"
import { site } from "./repository.ts"
import { expected, options } from "./search.ts"

const [file = ""] = globSync("dist/assets/chunks/@localSearchIndexroot.*.js", { cwd: site })
const built: { readonly default: string } = await import(join(site, file))

// As in VitePress's search box.
const index = MiniSearch.loadJSON<unknown>(built.default, {
  fields: ["title", "titles", "text"],
  storeFields: ["title", "titles"],
  searchOptions: {
    fuzzy: 0.2,
    prefix: true,
    boost: { title: 4, text: 2, titles: 1 },
    ...options.searchOptions,
  },
  ...options.options,
})

const shown = 3

const faults = Object.entries(expected).flatMap(([word, guides]) => {
  const found = index.search(word).map(({ id }) => String(id).replace(/#.*/, ""))
  const first = [...new Set(found)].slice(0, shown)
  return guides
    .filter((guide) => !first.includes(guide))
    .map((guide) => `${word}: ${guide} is not among ${first.join(", ")}`)
})

// The first search loads this much before compression.
const maxBytes = 715_000
const bytes = Buffer.byteLength(built.default)
if (bytes > maxBytes) faults.push(`the index has ${bytes} bytes, more than ${maxBytes}`)

process.stdout.write(
  `${Object.keys(expected).length} searches, ${faults.length} faults, an index of ${bytes} bytes\n`,
)
if (faults.length > 0) {
  process.stderr.write(`${faults.join("\n")}\n`)
  process.exitCode = 1
}
