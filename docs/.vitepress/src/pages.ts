/** The pages of the site: files of the repository, and where the site has them. */

import { existsSync, statSync } from "node:fs"
import { dirname, join } from "node:path/posix"
import { repository, root } from "./repository.ts"

/** The rules by which files become pages, by the first that applies. */
const rules: ReadonlyArray<readonly [RegExp, string]> = [
  [/^docs\/(reference\/.*)\.md$/, "$1.md"],
  [/^docs\/((?:(?:hosts|internals)\/)?[\w-]+)\.md$/, "$1.md"],
  [/^(packages|examples)\/([\w-]+)\/README\.md$/, "$1/$2.md"],
  [/^(SECURITY|CONTRIBUTING)\.md$/, "$1.md"],
]

/** Where the site has a file, such as `hosts/express.md` for `docs/hosts/express.md`. */
export const pageOf = (file: string): string | undefined => {
  const [pattern, page] = rules.find(([rule]) => rule.test(file)) ?? []
  return pattern === undefined || page === undefined
    ? undefined
    : file.replace(pattern, page).replace(/^[A-Z]+\.md$/, (name) => name.toLowerCase())
}

/** Whether a page is made from the code, so that the repository does not have it. */
export const isGenerated = (file: string): boolean => file.startsWith("docs/reference/")

const isFolder = (path: string): boolean =>
  statSync(join(root, path), { throwIfNoEntry: false })?.isDirectory() === true

/** The page that shows a file or a folder, if one does. */
const shownBy = (path: string): string | undefined => {
  if (path === "README.md") return "index.md"
  const file = isFolder(path) ? join(path, "README.md") : path
  return existsSync(join(root, file)) ? pageOf(file) : undefined
}

/** Where a link to a file of the repository leads: to a page, or to the repository. */
const targetOf = (path: string): string => {
  const page = shownBy(path)
  return page === undefined
    ? `${repository}/${isFolder(path) ? "tree" : "blob"}/main/${path}`
    : `/${page.replace(/(^|\/)index\.md$/, "$1").replace(/\.md$/, "")}`
}

/**
 * Where the site leads by a link that a file has.
 *
 * @param file - the path of the file in the repository
 */
export const linkOf = (file: string, link: string): string => {
  if (/^(?:[a-z]+:|[#/])/.test(link)) return link
  const [path = "", fragment] = link.split("#")
  const target = targetOf(join(dirname(file), path).replace(/\/$/, ""))
  return fragment === undefined ? target : `${target}#${fragment}`
}
