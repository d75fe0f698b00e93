/**
 * Compares the test files of the repository with those that ran, by the reports of both suites, which are the arguments: no
 * pattern of the configuration leaves a file out, and none runs in both.
 */

import { readFileSync } from "node:fs"
import { relative } from "node:path"
import { root, testFiles } from "./repository.js"

const ran = process.argv
  .slice(2)
  .flatMap((report) => JSON.parse(readFileSync(report, "utf8")).testResults)
  .map(({ name }) => relative(root, name))

const wrong = testFiles().filter((path) => ran.filter((other) => other === path).length !== 1)
if (ran.length === 0 || wrong.length > 0) {
  throw new Error(`these ran in no suite, or in both: ${wrong.join(", ")}`)
}
