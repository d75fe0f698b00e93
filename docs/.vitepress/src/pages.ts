/** The site's pages: repository files, and their paths on the site. */

import { existsSync, statSync } from "node:fs"
import { dirname, join } from "node:path/posix"
import { repository, root } from "./repository.ts"

/** Rules for turning files into pages; the first match applies. */
const rules: ReadonlyArray<readonly [RegExp, string]> = [
  [/^docs\/(reference\/.*)\.md$/, "$1.md"],
  [/^docs\/((?:(?:hosts|internals)\/)?[\w-]+)\.md$/, "$1.md"],
  [/^(packages|examples)\/([\w-]+)\/README\.md$/, "$1/$2.md"],
  [/^(SECURITY|CONTRIBUTING)\.md$/, "$1.md"],
]

/** Returns a file's path on the site, such as `hosts/express.md` for `docs/hosts/express.md`. */
export const pageOf = (file: string): string | undefined => {
  const [pattern, page] = rules.find(([rule]) => rule.test(file)) ?? []
  return pattern === undefined || page === undefined
    ? undefined
    : file.replace(pattern, page).replace(/^[A-Z]+\.md$/, (name) => name.toLowerCase())
}

/** Tells whether a page is generated from the code, and so missing in the repository. */
export const isGenerated = (file: string): boolean => file.startsWith("docs/reference/")

const isFolder = (path: string): boolean =>
  statSync(join(root, path), { throwIfNoEntry: false })?.isDirectory() === true

/** Returns the page for a file or folder, if there is one. */
const shownBy = (path: string): string | undefined => {
  if (path === "README.md") return "index.md"
  const file = isFolder(path) ? join(path, "README.md") : path
  return existsSync(join(root, file)) ? pageOf(file) : undefined
}

/** Resolves a link to a repository file: to a page, or to the repository. */
const targetOf = (path: string): string => {
  const page = shownBy(path)
  return page === undefined
    ? `${repository}/${isFolder(path) ? "tree" : "blob"}/main/${path}`
    : `/${page.replace(/(^|\/)index\.md$/, "$1").replace(/\.md$/, "")}`
}

/**
 * Resolves a link in a file for the site.
 *
 * @param file - the file's path in the repository
 */
export const linkOf = (file: string, link: string): string => {
  if (/^(?:[a-z]+:|[#/])/.test(link)) return link
  const [path = "", fragment] = link.split("#")
  const target = targetOf(join(dirname(file), path).replace(/\/$/, ""))
  return fragment === undefined ? target : `${target}#${fragment}`
}
