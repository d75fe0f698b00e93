/** The page's size, and the licences in the package. */

import { readFile } from "node:fs/promises"
import { gzipSync } from "node:zlib"
import { expect, it } from "vitest"
import { files, html } from "../src/files.generated.ts"

it("the page has at most 64.3 kB", () => {
  const all = [html, ...Object.values(files).map(({ text }) => text)]
  const size = all.reduce((sum, one) => sum + gzipSync(one).length, 0)
  expect(size).toBeLessThan(64_300)
})

it("the package has the licences of what the page contains", async () => {
  const notices = await readFile(new URL("../NOTICES.txt", import.meta.url), "utf8")
  const names = [...notices.matchAll(/^(\S+) \d+\.\d+\.\d+ \(MIT\)\n\n/gm)].map(([, name]) => name)
  expect(names).toEqual(["preact", "uplot"])
  expect(notices).toContain("Permission is hereby granted, free of charge")
  const manifest = await readFile(new URL("../package.json", import.meta.url), "utf8")
  expect(JSON.parse(manifest).files).toContain("NOTICES.txt")
})
