/** The TypeScript in the documentation: in Markdown files, and in doc comments of the sources. */

import { readFileSync } from "node:fs"
import { glob, mkdir, rm, writeFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"

/** The root of the repository. */
export const root = fileURLToPath(new URL("../..", import.meta.url))

/** A piece of code. */
export interface Example {
  /** Such as `README.md-1`, by file and place. */
  readonly name: string
  readonly code: string
}

// On the site, a block between `<!-- tabs -->` and `<!-- /tabs -->` has its title in brackets.
const fence = /^```ts(?: \[[^\]\n]+\])?\n(.*?)^```$/gms

/** The text of the doc comments of a source, without their stars. */
const docComments = (source: string): string =>
  [...source.matchAll(/\/\*\*.*?\*\//gs)]
    .map(([comment]) => comment.replaceAll(/^[ \t]*\* ?/gm, ""))
    .join("\n")

/** The examples in a file. */
export const examplesIn = (path: string): ReadonlyArray<Example> => {
  const content = readFileSync(`${root}/${path}`, "utf8")
  const text = path.endsWith(".md") ? content : docComments(content)
  return [...text.matchAll(fence)].map(([, code = ""], index) => ({
    name: `${path.replaceAll("/", "-")}-${index + 1}`,
    code,
  }))
}

// The hosts of these pages are installed by `npm run hosts` alone, which tests them.
const elsewhere = /^docs\/hosts\/(bun|deno|h3|nest|next)\.md$/

/** All examples, except for those of hosts that are not installed. */
export const findExamples = async (): Promise<ReadonlyArray<Example>> => {
  const files = glob(
    [
      "README.md",
      "docs/*.md",
      "docs/{hosts,internals}/*.md",
      "packages/*/README.md",
      "packages/*/src/**/*.ts",
    ],
    {
      cwd: root,
    },
  )
  const found: Array<string> = []
  for await (const file of files) found.push(file)
  return found
    .filter((path) => !elsewhere.test(path))
    .toSorted()
    .flatMap(examplesIn)
}

/** Writes examples as files into an empty folder, where they find the packages that they import. Returns its path. */
export const writeExamples = async (
  name: string,
  examples: ReadonlyArray<Example>,
): Promise<string> => {
  const folder = `${root}/docs/.${name}`
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder)
  for (const example of examples) await writeFile(`${folder}/${example.name}.ts`, example.code)
  return folder
}
