import { existsSync, readFileSync } from "node:fs"
import { glob } from "node:fs/promises"
import { basename, dirname } from "node:path"
import { expect, it } from "vitest"
import { root } from "./examples.ts"

const page = readFileSync(`${root}/docs/architecture.md`, "utf8")

const paths: Array<string> = []
for await (const path of glob("packages/*/src/**/*.ts", { cwd: root })) paths.push(path)
const names = new Set(paths.flatMap((path) => [basename(path, ".ts"), basename(dirname(path))]))

/** Paths in the tables and the text start at the root, in packages/, or in packages/core/src/. */
const starts = ["", "packages/", "packages/core/src/"]

it("every path on the page of the architecture exists", () => {
  const quoted = [...page.matchAll(/`([\w./-]*\/[\w./-]*)`/g)].map(([, path = ""]) => path)
  expect(quoted.length).toBeGreaterThan(30)
  expect(
    quoted.filter((path) => !starts.some((start) => existsSync(`${root}/${start}${path}`))),
  ).toEqual([])
})

it("every module in the drawings of the architecture exists", () => {
  const drawings = [...page.matchAll(/^```\n(.*?)^```/gms)].map(([drawing]) => drawing).join()
  const modules = [
    ...drawings.matchAll(
      /\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b|\b(?:Handler|Verdict|Routing|Envelope|Outbox)\b/g,
    ),
  ]
  expect(modules.length).toBeGreaterThan(15)
  expect(modules.map(([name]) => name).filter((name) => !names.has(name))).toEqual([])
})
