/** The links between pages lead to files and headings that exist, and pages show the templates of `tenure init`. */

import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, it } from "vitest"
import { filesOf, read, root } from "./examples.ts"
import { importPaths } from "./modules.ts"

const files = await filesOf(
  "*.md",
  "docs/{,hosts/,internals/}*.md",
  ".github/*.md",
  "{packages,examples}/*/README.md",
)

const proseOf = (path: string): string => read(path).replaceAll(/^ *```.*?^ *```$/gms, "")

/** The fragments for a page's headings, as GitHub writes them. */
const fragmentsOf = (path: string): ReadonlyArray<string> =>
  [...proseOf(path).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  )

/** What is wrong with a page's link, if anything is. */
const faultOf = (page: string, link: string): string | undefined => {
  const [path = "", fragment] = link.split("#")
  const target = path === "" ? page : join(dirname(page), path)
  if (!existsSync(join(root, target))) return `${link}: there is no such file`
  return fragment === undefined || fragmentsOf(target).includes(fragment)
    ? undefined
    : `${link}: there is no such heading`
}

describe("the links of a page lead somewhere:", () => {
  it.each(files)("%s", (page) => {
    const links = [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link)
    const local = links.filter((link) => !/^[a-z]+:/.test(link))
    expect(local.flatMap((link) => faultOf(page, link) ?? [])).toEqual([])
  })
})

describe("the import paths on a page can be imported:", () => {
  it.each(files)("%s", (page) => {
    const quoted = [...proseOf(page).matchAll(/`((?:@tenure\/[\w-]+|tenure)\/[\w/-]+)`/g)]
    const paths = quoted.map(([, path = ""]) => path)
    expect(paths.filter((path) => !importPaths.has(path))).toEqual([])
  })
})

const texts = (await filesOf("README.md", "docs/**/*.md")).map(read)

it.each(await filesOf("packages/cli/templates/*.ts"))("the template %s is on a page", (file) => {
  expect(texts.join("\n")).toContain(`\n${read(file)}\`\`\`\n`)
})
