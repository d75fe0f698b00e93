/**
 * Runs the system suite, and writes its report to the file that is the argument; further arguments are Vitest's. A file that fails
 * is named. If it depends on load and its first lines say `@rerun`, it runs once more alone: never where that could hide what
 * kills, outages and races have lost.
 */

import { spawnSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join, relative } from "node:path"
import { root } from "./repository.js"

const mayRunAgain = (path) => /^ *\* @rerun$/m.test(readFileSync(join(root, path), "utf8"))

const reporters = ["--reporter=default", "--reporter=json"]

/** Runs the suite, or files of it, and returns its exit code and its report. */
const run = (file, ...args) => {
  const command = [
    "run",
    "--silent",
    "test:system",
    "--",
    ...reporters,
    `--outputFile.json=${file}`,
  ]
  const { status } = spawnSync("npm", [...command, ...args], { cwd: root, stdio: "inherit" })
  return { status, report: JSON.parse(readFileSync(file, "utf8")) }
}

const [file, ...args] = process.argv.slice(2)
const { report, status } = run(file, ...args)

/** A file's results, of a second run if it has failed and may run again. */
const settled = (result) => {
  const path = relative(root, result.name)
  if (result.status === "passed" || !mayRunAgain(path)) return result
  const [again] = run(`${file}.again`, "--maxWorkers=1", path).report.testResults
  process.stdout.write(`${path} failed, and ${again.status} when it ran again alone\n`)
  return again
}

if (status !== 0) {
  const testResults = report.testResults.map(settled)
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults)
  const numOf = (outcome) => tests.filter(({ status: ended }) => ended === outcome).length
  const [numPassedTests, numFailedTests] = ["passed", "failed"].map(numOf)
  writeFileSync(file, JSON.stringify({ testResults, numPassedTests, numFailedTests }))
  const failed = testResults.filter((result) => result.status !== "passed")
  process.stdout.write(
    `failed: ${failed.map(({ name }) => relative(root, name)).join(", ") || "none"}\n`,
  )
  // What is no test's fault, such as an error that nobody handles, has no file.
  const hasFile = report.testResults.some((result) => result.status !== "passed")
  process.exitCode = failed.length > 0 || !hasFile ? 1 : 0
}
