/** The sidebar, with links to all pages. */

import { globSync, readFileSync } from "node:fs"
import type { DefaultTheme } from "vitepress"
import { linkOf, pageOf } from "./pages.ts"
import { root } from "./repository.ts"

/** The guides by subject: pages under `docs`, and the client's README. */
const groups: Readonly<Record<string, ReadonlyArray<string>>> = {
  Begin: ["why", "start", "hosts", "concepts", "playground"],
  Use: ["memberships", "webhooks", "ends", "feed", "transactions", "testing"],
  Run: ["storage", "deploy", "watch"],
  "Look up": ["options", "http-api", "packages/client/README", "cli", "performance"],
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

/** Pages on one subject. */
export interface Section {
  readonly text: string
  readonly files: ReadonlyArray<string>
  readonly isCollapsed: boolean
}

const itemsOf = ({ files, isCollapsed, text }: Section): DefaultTheme.SidebarItem => ({
  text,
  collapsed: isCollapsed,
  items: files.map(itemOf),
})

const collapsed = (text: string, files: ReadonlyArray<string>): Section => ({
  text,
  files,
  isCollapsed: true,
})

const open = (text: string, files: ReadonlyArray<string>): Section => ({
  text,
  files,
  isCollapsed: false,
})

const fileOf = (name: string): string => `${name.includes("/") ? "" : "docs/"}${name}.md`

const guideSections = (): ReadonlyArray<Section> => {
  const grouped = new Set(["index", ...Object.values(groups).flat()].map(fileOf))
  const others = filesOf("docs/*.md").filter((file) => !grouped.has(file))
  return [
    ...Object.entries(groups).map(([text, names]) => open(text, names.map(fileOf))),
    ...(others.length === 0 ? [] : [open("More", others)]),
    collapsed("Hosts", filesOf("docs/hosts/*.md")),
    collapsed("Internals", filesOf("docs/internals/*.md")),
    collapsed(
      "Packages",
      filesOf("packages/*/README.md").filter((file) => !grouped.has(file)),
    ),
    collapsed("Examples", filesOf("examples/*/README.md")),
    collapsed("Project", ["CONTRIBUTING.md", "SECURITY.md"]),
  ]
}

const generated = "docs/reference"

const packageOf = (file: string): string => file.slice(generated.length + 1).split(/[/.]/)[0] ?? ""

const index = `${generated}/index.md`

/** Returns each package's modules, after the endpoints. */
const referenceSections = (): ReadonlyArray<Section> => {
  const http = [`${generated}/http.md`, `${generated}/events.md`]
  const modules = filesOf(`${generated}/**/*.md`).filter(
    (file) => !http.includes(file) && file !== index,
  )
  return [
    open("HTTP", http),
    ...[...new Set(modules.map(packageOf))].map((name) =>
      collapsed(
        `@tenure/${name}`,
        modules.filter((file) => packageOf(file) === name),
      ),
    ),
  ]
}

/** All pages but the first one. */
export const sections = (): ReadonlyArray<Section> => [
  ...guideSections(),
  open("Reference", [index]),
  ...referenceSections(),
]

/** The guide's sidebar. */
export const guide = (): Array<DefaultTheme.SidebarItem> => guideSections().map(itemsOf)

/** The reference's sidebar. */
export const reference = (): Array<DefaultTheme.SidebarItem> => referenceSections().map(itemsOf)
