/** A process that is killed leaves everything that it answered in its folder. */

import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { startFolder } from "../../faults/scenarios/folders.ts"

const path = mkdtempSync(join(tmpdir(), "tenure-folder-"))
afterAll(() => rmSync(path, { recursive: true }))

describe("a folder whose process is killed", () => {
  it("has all that was answered, once, and is open to the next process at once", async () => {
    const kill = await startFolder(path)
    const { answered, left, wrong } = await kill(1)
    expect(wrong).toEqual([])
    expect(left).toBeGreaterThanOrEqual(answered)
  })
})
