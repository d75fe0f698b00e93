/** Checks that every link within the built site leads somewhere, also to a heading, and that every image is there. */

import { existsSync, globSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path/posix"
import { type HTMLElement, parse } from "node-html-parser"
import { site } from "./repository.ts"

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

/** What is wrong with a link of a page, if anything is. */
const faultOf = (page: string, link: string): string | undefined => {
  const [given = "", fragment = ""] = link.split("#")
  const path = given === "" ? page : join("/", given.startsWith("/") ? "" : dirname(page), given)
  const ids = fragments.get(path)
  if (ids === undefined)
    return path !== "/" && existsSync(join(folder, path)) ? undefined : "there is no such page"
  return fragment === "" || ids.has(decodeURIComponent(fragment))
    ? undefined
    : "there is no such heading"
}

const isLocal = (link: string): boolean => !/^(?:[a-z]+:|\/\/)/.test(link)

const faults = [...pages].flatMap(([path, page]) =>
  [...valuesOf(page, "a[href]", "href"), ...valuesOf(page, "img[src]", "src")]
    .filter(isLocal)
    .flatMap((link) => {
      const fault = faultOf(path, link)
      return fault === undefined ? [] : [`${path}: ${link}: ${fault}`]
    }),
)

process.stdout.write(`${pages.size} pages, ${faults.length} wrong links\n`)
if (faults.length > 0) {
  process.stderr.write(`${[...new Set(faults)].join("\n")}\n`)
  process.exitCode = 1
}
