/** What becomes of two processes on one folder when the lock between them is removed. */

import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import fs from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import type { Promises } from "@tenure/core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { copyOf, expectEmpty, folderWithDatabase, open, temporaryFolder } from "./folders.ts"

const program = fileURLToPath(new URL("programs/writer.ts", import.meta.url))

const model = temporaryFolder()

beforeAll(async () => {
  fs.cpSync(await folderWithDatabase(), model, { recursive: true })
  await (await open(model)).close()
})

/** Copies a folder whose database has tables. */
const folderWithTables = (): string => copyOf(model)

/** Puts another lock file in place of the one that a process has locked. */
const replaceLock = (path: string): void => {
  fs.writeFileSync(join(path, "other"), "")
  fs.renameSync(join(path, "other"), join(path, "lock"))
}

const running = new Set<ChildProcess>()

afterAll(() => {
  for (const child of running) child.kill("SIGKILL")
})

/** Starts a process that grants memberships, and waits for the first one. */
const startWriter = async (path: string) => {
  const child = spawn(process.execPath, ["-C", "@tenure/source", program, path], {
    stdio: ["ignore", "pipe", "inherit"],
  })
  running.add(child)
  const lines: Array<string> = []
  createInterface(child.stdout).on("line", (line) => lines.push(line))
  const closed = once(child, "close").then(() => running.delete(child))
  const granted = () => lines.flatMap((line) => /(?<=^granted )\d+/.exec(line)?.[0] ?? [])
  const goesOn = async () => {
    const before = granted().length
    await expect.poll(() => granted().length).toBeGreaterThan(before)
  }
  await goesOn()
  return {
    /** The users whose memberships were granted. */
    granted: () => granted().toSorted(),
    /** Waits until another membership has been granted. */
    goesOn,
    /** Waits until the process ends by itself, and returns why. */
    refusal: async () => {
      await closed
      return lines.at(-1)
    },
    end: async () => {
      child.kill("SIGTERM")
      await closed
    },
  }
}

const usersIn = (tenure: Promises) =>
  tenure.memberships
    .list({ projectId: "p1", limit: 10_000 })
    .then((members) => members.map(({ userId }) => userId).toSorted())

const usersOf = async (path: string): Promise<ReadonlyArray<string>> => {
  const tenure = await open(path)
  const users = await usersIn(tenure)
  await tenure.close()
  return users
}

// A machine that is busy starts a process slowly.
describe("a process", { timeout: 120_000 }, () => {
  it("whose lock file is removed keeps others out, at once and later, and goes on", async () => {
    const path = folderWithTables()
    const writer = await startWriter(path)
    fs.rmSync(join(path, "lock"))
    await expect(open(path)).rejects.toThrow(/in use by process|"lock" is missing/)
    await writer.goesOn()
    await expect.poll(() => fs.existsSync(join(path, "lock"))).toBe(true)
    await expect(open(path)).rejects.toThrow(/in use by process \d+\./)
    await writer.goesOn()
    await writer.end()
    expect(await usersOf(path)).toEqual(writer.granted())
  })

  it("that writes nothing locks the folder again within seconds", async () => {
    const path = folderWithTables()
    const idle = await open(path)
    fs.rmSync(join(path, "lock"))
    await expect.poll(() => fs.existsSync(join(path, "lock")), { timeout: 3000 }).toBe(true)
    await expect(open(path)).rejects.toThrow(/in use by process/)
    await idle.close()
  })

  it("whose lock file is replaced is not ready any more, within seconds, although nobody calls it", async () => {
    const path = folderWithTables()
    const idle = await open(path)
    expect(await idle.isReady()).toBe(true)
    replaceLock(path)
    await expect.poll(() => idle.isReady(), { timeout: 10_000 }).toBe(false)
    await idle.close()
  })

  // They wait for the most part.
  it.concurrent("whose lock file is replaced stops, and writes no more", async () => {
    const path = folderWithTables()
    const writer = await startWriter(path)
    replaceLock(path)
    const second = await open(path)
    expect(await writer.refusal()).toMatch(/^refused StoreUnavailable/)
    await second.memberships.grant({
      projectId: "p1",
      userId: "second",
      endDate: 4_000_000_000_000,
    })
    expect(await usersIn(second)).toEqual([...writer.granted(), "second"].toSorted())
    await second.close()
    expect(await usersOf(path)).toEqual([...writer.granted(), "second"].toSorted())
  })

  it.concurrent("whose folder is moved stops, and leaves its place to others", async () => {
    const path = folderWithTables()
    const writer = await startWriter(path)
    fs.renameSync(path, `${path}.moved`)
    expect(await writer.refusal()).toMatch(/^refused StoreUnavailable/)
    expect(fs.existsSync(path)).toBe(false)
    expect(await usersOf(`${path}.moved`)).toEqual(writer.granted())
  })

  it.concurrent("whose database is replaced stops, and leaves the other as it is", async () => {
    const path = folderWithTables()
    const copy = folderWithTables()
    const writer = await startWriter(path)
    fs.renameSync(join(path, "database"), join(path, "replaced"))
    fs.renameSync(join(copy, "database"), join(path, "database"))
    expect(await writer.refusal()).toMatch(/^refused StoreUnavailable/)
    await expectEmpty(path)
  })
})

it("a folder without its lock file is refused until somebody makes one", async () => {
  const path = folderWithTables()
  fs.rmSync(join(path, "lock"))
  await expect(open(path)).rejects.toMatchObject({
    _tag: "FolderUnusable",
    message: expect.stringMatching(/its file "lock" is missing.*create the file/),
  })
  fs.writeFileSync(join(path, "lock"), "")
  await expectEmpty(path)
})
