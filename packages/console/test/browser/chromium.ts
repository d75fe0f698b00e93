/** Chromium, if it is installed or can be installed from Debian's packages. */

import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { type Browser, chromium } from "playwright-core"
import { afterAll, beforeAll, beforeEach } from "vitest"

const run = promisify(execFile)

const names = ["chromium", "chromium-browser", "google-chrome"]

const installed = (): string | undefined =>
  (process.env["PATH"] ?? "")
    .split(":")
    .flatMap((folder) => names.map((name) => join(folder, name)))
    .find((path) => existsSync(path))

/** Returns its path, or why there is none. */
const find = async () => {
  const path = installed()
  if (path !== undefined) return { path }
  try {
    const options = ["--yes", "--quiet", "--no-install-recommends"]
    await run("apt-get", ["install", ...options, "chromium"], { timeout: 300_000 })
    return { path: installed(), reason: "it is not where programs are" }
  } catch (error) {
    return { reason: `it cannot be installed here: ${String(error).split("\n")[0]}` }
  }
}

/** Where Chromium is, or the reason why it is not there. */
export const { path, reason } = { path: undefined, reason: undefined, ...(await find()) }

/** Starts a browser without a window. */
export const launch = (): Promise<Browser> =>
  chromium.launch({
    ...(path !== undefined && { executablePath: path }),
    // Its sandbox needs what containers do not give to root.
    args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
  })

/** Has a browser while a file's tests run. Without one, they are skipped. */
export const useBrowser = () => {
  let browser: Browser
  beforeEach(({ skip }) => skip(path === undefined, reason))
  beforeAll(async () => {
    if (path !== undefined) browser = await launch()
  })
  afterAll(() => browser?.close())
  return () => browser
}
