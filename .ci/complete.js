/**
 * Compares the test files of the repository with those that ran by the report of `npm test`, which is the argument, and those of
 * the system suite: no pattern of the configuration leaves a file out, and none is in both.
 */

import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { relative } from "node:path"
import { root, testFiles } from "./repository.js"

const [report] = process.argv.slice(2)
const ran = JSON.parse(readFileSync(report, "utf8")).testResults.map(({ name }) => name)

const listing = [
  "list",
  "--config",
  "vitest.workspace.ts",
  "--mode",
  "system",
  "--filesOnly",
  "--json",
]
const listed = JSON.parse(execFileSync("vitest", listing, { cwd: root })).map(({ file }) => file)

const paths = [...ran, ...listed].map((path) => relative(root, path))
const wrong = testFiles().filter((path) => paths.filter((other) => other === path).length !== 1)
if (ran.length === 0 || wrong.length > 0) {
  throw new Error(`these are in no suite, or in both: ${wrong.join(", ")}`)
}
