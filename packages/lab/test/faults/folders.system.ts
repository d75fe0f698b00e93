/** A process that is killed leaves everything that it answered in its folder. */

import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { changeOf } from "../../faults/folders/changes.ts"
import { type Content, compare } from "../../faults/folders/compare.ts"
import { start } from "../../faults/folders/kill.ts"

const path = mkdtempSync(join(tmpdir(), "tenure-folder-"))
afterAll(() => rmSync(path, { recursive: true }))

describe("a folder whose process is killed", () => {
  it("has all that was answered, once, and is open to the next process at once", async () => {
    const { kill } = await start(path)
    const { answered, left, wrong } = await kill(1)
    expect(wrong).toEqual([])
    expect(left).toBeGreaterThanOrEqual(answered)
  })
})

describe("what must not be", () => {
  const reasonOf = (number: number): string => changeOf(1, "1001", number).reason
  const whole = (number: number) => ({
    reason: reasonOf(number),
    changes: 1,
    events: 1,
    deliveries: 1,
  })
  const differences = (found: Content["found"], untrue: Content["untrue"] = []) =>
    compare(1, new Set(), new Set([reasonOf(1), reasonOf(2)]), { found, untrue })

  it("is found: what is lost, made up, there in parts or twice", () => {
    expect(differences([whole(1), whole(2)])).toEqual([])
    expect(differences([whole(1), whole(2), whole(3)])).toEqual([])
    expect(differences([whole(1)])).toEqual(["1/1001/2 is lost"])
    expect(differences([whole(1), whole(2), whole(4)])).toEqual(["1/1001/4 was never made"])
    expect(differences([whole(1), { ...whole(2), events: 0 }])).toHaveLength(1)
    expect(differences([whole(1), { ...whole(2), changes: 2 }])).toHaveLength(1)
    expect(differences([whole(1), whole(2)], [{ user: "1001" }])).toHaveLength(1)
  })
})
