/** The commands of docs/cli.md, run in a shell as they are written. */

import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { expect, it, onTestFinished } from "vitest"
import { binary } from "./programs.ts"
import { startServer, token } from "./server.ts"

const page = readFileSync(new URL("../../../docs/cli.md", import.meta.url), "utf8")

it("every command of the page succeeds", async () => {
  const server = await startServer()
  onTestFinished(server.stop)
  const folder = mkdtempSync(join(tmpdir(), "tenure-docs-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const blocks = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, code = ""]) => code)
  expect(blocks.length).toBeGreaterThan(3)
  const script = blocks
    .join("\n")
    .replaceAll("npx tenure", binary)
    .replaceAll("http://127.0.0.1:3000", server.url)
    .replaceAll("tnr_…", token)
  const env = {
    PATH: process.env["PATH"],
    NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
    XDG_CONFIG_HOME: folder,
  }
  const { stderr, stdout } = await promisify(execFile)("/bin/sh", ["-ec", script], {
    cwd: folder,
    env,
  })
  expect(stderr).not.toMatch(/failed|error/i)
  expect(stdout).toContain("webhook-signature: v1,")
})
