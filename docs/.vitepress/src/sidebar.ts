/** What is beside the pages: links to all of them. */

import { globSync, readFileSync } from "node:fs"
import type { DefaultTheme } from "vitepress"
import { linkOf, pageOf } from "./pages.ts"
import { root } from "./repository.ts"

/** The pages under `docs`, by what they are about. */
const groups: Readonly<Record<string, ReadonlyArray<string>>> = {
  Begin: ["why", "start", "hosts", "concepts"],
  Use: ["memberships", "webhooks", "ends", "feed", "transactions", "testing"],
  Run: ["storage", "deploy", "watch"],
  "Look up": ["options", "http-api", "cli", "performance"],
}

const titleOf = (file: string): string =>
  /^# (.*)$/m.exec(readFileSync(`${root}/${file}`, "utf8"))?.[1]?.replaceAll("`", "") ?? file

const itemOf = (file: string): DefaultTheme.SidebarItem => ({
  text: titleOf(file),
  link: linkOf("", file),
})

const filesOf = (pattern: string): ReadonlyArray<string> =>
  globSync(pattern, { cwd: root })
    .filter((file) => pageOf(file) !== undefined)
    .toSorted()

const sectionOf = (
  text: string,
  files: ReadonlyArray<string>,
  isCollapsed = true,
): DefaultTheme.SidebarItem => ({ text, collapsed: isCollapsed, items: files.map(itemOf) })

const fileOf = (name: string): string => `docs/${name}.md`

/** The sidebar of the guide. */
export const guide = (): Array<DefaultTheme.SidebarItem> => {
  const grouped = new Set(["index", ...Object.values(groups).flat()].map(fileOf))
  const others = filesOf("docs/*.md").filter((file) => !grouped.has(file))
  return [
    ...Object.entries(groups).map(([text, names]) => sectionOf(text, names.map(fileOf), false)),
    ...(others.length === 0 ? [] : [sectionOf("More", others, false)]),
    sectionOf("Hosts", filesOf("docs/hosts/*.md")),
    sectionOf("Internals", filesOf("docs/internals/*.md")),
    sectionOf("Packages", filesOf("packages/*/README.md")),
    sectionOf("Examples", filesOf("examples/*/README.md")),
    sectionOf("Project", ["CONTRIBUTING.md", "SECURITY.md"]),
  ]
}

const generated = "docs/reference"

const packageOf = (file: string): string => file.slice(generated.length + 1).split(/[/.]/)[0] ?? ""

/** The sidebar of the reference: the modules of each package. */
export const reference = (): Array<DefaultTheme.SidebarItem> => {
  const http = [`${generated}/http.md`, `${generated}/events.md`]
  const modules = filesOf(`${generated}/**/*.md`).filter(
    (file) => !http.includes(file) && file !== `${generated}/index.md`,
  )
  return [
    { text: "HTTP", items: http.map(itemOf) },
    ...[...new Set(modules.map(packageOf))].map((name) =>
      sectionOf(
        `@tenure/${name}`,
        modules.filter((file) => packageOf(file) === name),
      ),
    ),
  ]
}
