/** What becomes of a folder whose process is killed. */

import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { acquire } from "../src/Folder.ts"
import { folderWithDatabase } from "./folders.ts"

const program = fileURLToPath(new URL("programs/extending.ts", import.meta.url))

/** Runs the program until it has printed some lines, and kills it. Returns all lines that it printed. */
const runUntil = async (path: string, most: number): Promise<ReadonlyArray<number>> => {
  const child: ChildProcess & { readonly stdout: NodeJS.ReadableStream } = spawn(
    process.execPath,
    ["-C", "@tenure/source", program, path],
    { stdio: ["ignore", "pipe", "inherit"] },
  )
  const exit = once(child, "exit")
  const lines: Array<number> = []
  for await (const line of createInterface(child.stdout)) {
    lines.push(Number(line))
    if (lines.length === 2)
      await expect(acquire(path)).rejects.toThrow(`in use by process ${child.pid}.`)
    if (lines.length === most) child.kill("SIGKILL")
  }
  expect(await exit).toEqual([null, "SIGKILL"])
  return lines
}

describe("a folder whose process is killed", () => {
  it("has all that was answered, and is open to the next process at once", async () => {
    const path = await folderWithDatabase()
    let last = 0
    for (const most of [57, 3]) {
      const [found = 0, ...answered] = await runUntil(path, most)
      // One more may be committed, and its answer cut off.
      if (last > 0) expect([last, last + 1]).toContain(found)
      last = answered.at(-1) ?? 0
      expect(last).toBe(found + answered.length)
    }
  })
})
