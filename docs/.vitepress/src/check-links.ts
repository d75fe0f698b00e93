/**
 * Checks that all link targets in the built site exist: pages, headings, images, and repository files. Markdown files
 * are checked like pages.
 */

import { existsSync, globSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path/posix"
import { type HTMLElement, parse } from "node-html-parser"
import { withoutCode } from "./markdown.ts"
import { repository, root, site } from "./repository.ts"

const folder = join(site, "dist")

/** The pages, by their paths. */
const pages = new Map(
  globSync("**/*.html", { cwd: folder }).map((file) => [
    `/${file.replace(/(^|\/)index\.html$/, "$1").replace(/\.html$/, "")}`,
    parse(readFileSync(join(folder, file), "utf8")),
  ]),
)

const valuesOf = (page: HTMLElement, selector: string, name: string): ReadonlyArray<string> =>
  page.querySelectorAll(selector).flatMap((element) => element.getAttribute(name) ?? [])

const fragments = new Map(
  [...pages].map(([path, page]) => [path, new Set(valuesOf(page, "[id]", "id"))]),
)

const inRepository = new RegExp(`^${repository}/(?:blob|edit|raw|tree)/main/([^#]*)`)

/** Returns a message if a page's link is broken. */
const faultOf = (page: string, link: string): string | undefined => {
  const [, file] = inRepository.exec(link) ?? []
  if (file !== undefined) return existsSync(join(root, file)) ? undefined : "there is no such file"
  if (/^(?:[a-z]+:|\/\/)/.test(link)) return undefined
  const [given = "", fragment = ""] = link.split("#")
  const path = given === "" ? page : join("/", given.startsWith("/") ? "" : dirname(page), given)
  const ids = fragments.get(path.endsWith(".md") ? path.replace(/(index)?\.md$/, "") : path)
  if (ids === undefined || path.endsWith(".md")) {
    if (path === "/" || !existsSync(join(folder, path))) return "there is no such page"
  }
  return ids === undefined || fragment === "" || ids.has(decodeURIComponent(fragment))
    ? undefined
    : "there is no such heading"
}

const linksOf = (page: HTMLElement): ReadonlyArray<string> => [
  ...valuesOf(page, "a[href], link[rel=alternate]", "href"),
  ...valuesOf(page, "img[src]", "src"),
]

const texts = globSync(["**/*.md", "*.txt"], { cwd: folder })

/** The links in all pages and Markdown files, by path. */
const links = new Map([
  ...[...pages].map(([path, page]) => [path, linksOf(page)] as const),
  ...texts.map((file) => {
    const prose = withoutCode(readFileSync(join(folder, file), "utf8"))
    return [
      `/${file}`,
      [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link),
    ] as const
  }),
])

const faults = [...links].flatMap(([path, found]) =>
  found.flatMap((link) => {
    const fault = faultOf(path, link)
    return fault === undefined ? [] : [`${path}: ${link}: ${fault}`]
  }),
)

process.stdout.write(
  `${pages.size} pages, ${texts.length} Markdown files, ${faults.length} wrong links\n`,
)
if (faults.length > 0) {
  process.stderr.write(`${[...new Set(faults)].join("\n")}\n`)
  process.exitCode = 1
}
