/** The architecture page describes the sources as they are. */

import { existsSync } from "node:fs"
import { dirname } from "node:path"
import { describe, expect, it } from "vitest"
import { read, root } from "./examples.ts"
import { circularIn, edges, entryPoints, groupBy, modules, packageOf } from "./modules.ts"

const page = read("docs/internals/architecture.md")

/** The rows in the table with the given head, without the head. */
const tableOf = (head: string): ReadonlyArray<ReadonlyArray<string>> => {
  const lines = page.split("\n")
  const start = lines.findIndex((line) => line.startsWith(`| ${head} `))
  const end = lines.indexOf("", start)
  return lines.slice(start + 2, end).map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

const codeIn = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code)

/** A module's folder as the page names it: `core/base`, `console/page/parts`. */
const folderOf = (path: string): string =>
  dirname(path)
    .replace(/^packages\//, "")
    .replace(/\/src(?=\/|$)/, "")

/** The folders that a row allows. `all above` means those in the same package. */
const allowed = new Map<string, ReadonlySet<string>>()
for (const [name = "", , may = ""] of tableOf("folder")) {
  const [folder = ""] = codeIn(name)
  const home = folder.split("/")[0] ?? ""
  const start = folder.includes("page") ? "console/page" : home
  const above = [...allowed.keys()].filter((other) => other.split("/")[0] === home)
  const [given = "", but = ""] = may.split(" but ")
  const names = given.startsWith("all above")
    ? above.filter((other) => !codeIn(but).includes(other.replace(`${home}/`, "")))
    : codeIn(given).map((other) => `${start}/${other}`)
  allowed.set(folder, new Set(names))
}

const packages = new Map<string, ReadonlySet<string>>()
for (const [names = "", may = ""] of tableOf("package")) {
  const others = may.startsWith("all above") ? [...packages.keys()] : codeIn(may)
  for (const name of codeIn(names)) packages.set(name, new Set(others))
}

const inProduct = modules.filter((path) => packages.has(packageOf(path)))
const inside = edges.filter(({ from, to }) => packageOf(from) === packageOf(to))
const say = ({ from, to }: { readonly from: string; readonly to: string }): string =>
  `${from} imports ${to}`

describe("the table of imports", () => {
  it("has every folder of the packages that it names", () => {
    const homes = new Set([...allowed.keys()].map((folder) => folder.split("/")[0]))
    const folders = inProduct.map(folderOf).filter((folder) => homes.has(folder.split("/")[0]))
    const isPrivate = /^(console|core\/http\/docs)$/
    expect(
      [...new Set(folders)].filter((one) => !allowed.has(one) && !isPrivate.test(one)),
    ).toEqual([])
  })

  it("allows every import between folders", () => {
    const wrong = inside.filter(({ from, to }) => {
      const may = allowed.get(folderOf(from))
      return may !== undefined && folderOf(from) !== folderOf(to) && !may.has(folderOf(to))
    })
    expect(wrong.map(say)).toEqual([])
  })

  it("allows every import between packages", () => {
    const wrong = edges.filter(({ from, to }) => {
      const may = packages.get(packageOf(from))
      return may !== undefined && packageOf(from) !== packageOf(to) && !may.has(packageOf(to))
    })
    expect(wrong.map(say)).toEqual([])
  })
})

describe("modules", () => {
  it("do not import each other in circles", () => {
    expect(circularIn(inside.filter(({ kind }) => kind === "value"))).toEqual([])
  })

  it("are worth a file: 60 lines, two importers, an entry point, or loaded lazily", () => {
    const importers = groupBy(edges, ({ to }) => to)
    const small = inProduct.filter((path) => {
      const by = importers.get(path) ?? []
      return (
        packageOf(path) !== "tenure" &&
        packageOf(path) !== "testing" &&
        !entryPoints.has(path) &&
        !/\/bin\/|main\.tsx$|\.generated\.ts$|version\.ts$/.test(path) &&
        new Set(by.map(({ from }) => from)).size < 2 &&
        !by.some(({ kind }) => kind === "lazy") &&
        read(path).split("\n").length < 60
      )
    })
    expect(small.length, small.join("\n")).toBeLessThanOrEqual(6)
  })

  it("export names that say what they are without their file", () => {
    const bare = /^export (?:const|function) (make|of|read|start|options)\b/gm
    const found = inProduct.flatMap((path) =>
      [...read(path).matchAll(bare)].map(([, name = ""]) => `${path}: ${name}`),
    )
    expect(found).toEqual([])
  })
})

it.each(["docs/internals/architecture.md", "CONTRIBUTING.md"])(
  "every path in %s exists",
  (name) => {
    const starts = [
      "",
      "packages/",
      "packages/core/src/",
      "packages/postgres/src/",
      "packages/cli/src/",
    ]
    const text = read(name).replaceAll(/^```.*?^```/gms, "")
    const quoted = codeIn(text).filter((code) => /^[\w.-]+(\/[\w.-]+)+$/.test(code))
    const inCode = quoted.filter((code) => !/^tenure\/|^@|^ghcr\.io\/|\/dist$/.test(code))
    const exists = (path: string): boolean =>
      starts.some((start) => existsSync(`${root}/${start}${path}`)) ||
      existsSync(`${root}/packages/${path.replace("/", "/src/")}`)
    expect(inCode.length).toBeGreaterThan(5)
    expect(inCode.filter((path) => !exists(path))).toEqual([])
  },
)
