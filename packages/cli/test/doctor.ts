/** Runs `doctor` where it finds a problem. */

import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished } from "vitest"
import { tenureWith } from "./in-process.ts"

/** Runs it, and returns what it prints. */
export const doctorOf = async (environment: Readonly<Record<string, string>>): Promise<string> => {
  const folder = mkdtempSync(join(tmpdir(), "tenure-doctor-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const { code, stderr, stdout } = await tenureWith({ XDG_CONFIG_HOME: folder, ...environment })(
    "doctor",
  )
  expect(code).toBe(1)
  return stdout + stderr
}
