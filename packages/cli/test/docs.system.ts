/** The commands of docs/cli.md, as they are written. */

import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { expect, it, onTestFinished } from "vitest"
import { tenureWith } from "./in-process.ts"
import { bareEnvironment, binary } from "./programs.ts"
import { startServer, token } from "./server.ts"

const page = readFileSync(new URL("../../../docs/cli.md", import.meta.url), "utf8")

/** A command that needs no shell: neither pipes nor files. */
const plain = /^npx tenure ((?:[^|&<>.]|\.\d)*)$/

const wordsOf = (line: string): ReadonlyArray<string> =>
  [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, bare]) => single ?? double ?? bare ?? "",
  )

it("every command of the page succeeds", async () => {
  const server = await startServer()
  onTestFinished(server.stop)
  const folder = mkdtempSync(join(tmpdir(), "tenure-docs-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const blocks = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, code = ""]) => code)
  expect(blocks.length).toBeGreaterThan(3)
  const lines = blocks
    .join("")
    .replaceAll("http://127.0.0.1:3000", server.url)
    .split("\n")
    .filter((line) => line !== "")
  // On a terminal, the token is asked for.
  const environment: Record<string, string> = { XDG_CONFIG_HOME: folder, TENURE_TOKEN: token }
  for (const line of lines) {
    const [, args] = plain.exec(line) ?? []
    if (line.startsWith("export ")) {
      for (const [, name = "", value = ""] of line.matchAll(/(\w+)=(\S+)/g))
        environment[name] = value
    } else if (args === undefined) {
      const env = { ...bareEnvironment, ...environment }
      const script = line.replaceAll("npx tenure", binary)
      await promisify(execFile)("/bin/sh", ["-ec", script], { cwd: folder, env })
    } else {
      expect(await tenureWith(environment)(...wordsOf(args)), line).toMatchObject({ code: 0 })
    }
  }
})
