/** The TypeScript in the documentation: in Markdown files, and in doc comments. */

import { readFileSync } from "node:fs"
import { glob, mkdir, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

/** The repository's root. */
export const root = fileURLToPath(new URL("../..", import.meta.url))

/** Returns the text in a file from the repository. */
export const read = (path: string): string => readFileSync(join(root, path), "utf8")

/** Returns the repository's files that match a pattern, in order. */
export const filesOf = async (
  ...patterns: ReadonlyArray<string>
): Promise<ReadonlyArray<string>> => {
  const exclude = (path: string): boolean => path.includes("node_modules")
  const files: Array<string> = []
  for await (const file of glob(patterns, { cwd: root, exclude })) files.push(file)
  return files.toSorted()
}

/** Returns a page's code blocks in a language. */
export const blocksIn = (text: string, language: string): ReadonlyArray<string> =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, "gms"))].map(
    ([, code = ""]) => code,
  )

export interface Example {
  /** Such as `README.md-1`, by file and place. */
  readonly name: string
  readonly code: string
}

// On the site, a block between `<!-- tabs -->` and `<!-- /tabs -->` has its title in brackets.
const fence = /^```ts(?: \[[^\]\n]+\])?\n(.*?)^```$/gms

/** The doc comments' text in a source, without their stars. */
const docComments = (source: string): string =>
  [...source.matchAll(/\/\*\*.*?\*\//gs)]
    .map(([comment]) => comment.replaceAll(/^[ \t]*\* ?/gm, ""))
    .join("\n")

/** The examples in a file. */
export const examplesIn = (path: string): ReadonlyArray<Example> => {
  const content = read(path)
  const text = path.endsWith(".md") ? content : docComments(content)
  return [...text.matchAll(fence)].map(([, code = ""], index) => ({
    name: `${path.replaceAll("/", "-")}-${index + 1}`,
    code,
  }))
}

// These pages' hosts are installed by `npm run hosts` alone, which tests them.
const elsewhere = /^docs\/hosts\/(bun|deno|h3|nest|next)\.md$/

/** All examples, except for hosts that are not installed. */
export const findExamples = async (): Promise<ReadonlyArray<Example>> => {
  const files = await filesOf(
    "README.md",
    "docs/*.md",
    "docs/{hosts,internals}/*.md",
    "packages/*/README.md",
    "packages/*/src/**/*.ts",
  )
  return files.filter((path) => !elsewhere.test(path)).flatMap(examplesIn)
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
