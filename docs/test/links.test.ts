import { existsSync, readFileSync } from "node:fs"
import { glob } from "node:fs/promises"
import { dirname, join } from "node:path"
import { describe, expect, it } from "vitest"
import { root } from "./examples.ts"
import { importPaths } from "./modules.ts"

const files: Array<string> = []
for await (const file of glob(
  [
    "*.md",
    "docs/*.md",
    "docs/hosts/*.md",
    "docs/internals/*.md",
    ".github/*.md",
    "packages/*/README.md",
    "examples/*/README.md",
  ],
  { cwd: root },
)) {
  files.push(file)
}

const withoutCode = (text: string): string => text.replaceAll(/^ *```.*?^ *```$/gms, "")

const read = (path: string): string => withoutCode(readFileSync(join(root, path), "utf8"))

/** The fragments of a page's headings, as GitHub writes them. */
const fragmentsOf = (path: string): ReadonlyArray<string> =>
  [...read(path).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  )

/** What is wrong with a link of a page, if anything is. */
const faultOf = (page: string, link: string): string | undefined => {
  const [path = "", fragment] = link.split("#")
  const target = path === "" ? page : join(dirname(page), path)
  if (!existsSync(join(root, target))) return `${link}: there is no such file`
  return fragment === undefined || fragmentsOf(target).includes(fragment)
    ? undefined
    : `${link}: there is no such heading`
}

describe("the links of a page lead somewhere:", () => {
  it.each(files.toSorted())("%s", (page) => {
    const links = [...read(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link)
    const local = links.filter((link) => !/^[a-z]+:/.test(link))
    expect(local.flatMap((link) => faultOf(page, link) ?? [])).toEqual([])
  })
})

describe("the import paths on a page can be imported:", () => {
  it.each(files.toSorted())("%s", (page) => {
    const quoted = [...read(page).matchAll(/`((?:@tenure\/[\w-]+|tenure)\/[\w/-]+)`/g)]
    const paths = quoted.map(([, path = ""]) => path)
    expect(paths.filter((path) => !importPaths.has(path))).toEqual([])
  })
})
