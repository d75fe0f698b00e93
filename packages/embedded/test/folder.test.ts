/** Folders are created, refused while they are in use, and left to other packages. */

import fs, { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { PGlite } from "@electric-sql/pglite"
import { createTenure } from "@tenure/core"
import { describe, expect, it, onTestFinished } from "vitest"
import { openEngine } from "../src/engine.ts"
import { folderUnusable, lockFolder } from "../src/folder.ts"
import { embedded } from "../src/index.ts"
import { folderWithDatabase, temporaryFolder } from "./folders.ts"

const opening = (path: string) => createTenure({ stores: embedded({ path }) })

/** Has no file become longer, as on a full disk, until the returned function is called. */
const fillDisk = (): (() => void) => {
  const { writeSync } = fs
  const write = (file: number, data: Uint8Array, at: number, length: number, position: number) => {
    if (fs.fstatSync(file).size < position + length)
      throw Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" })
    return writeSync(file, data, at, length, position)
  }
  Object.assign(fs, { writeSync: write })
  return () => void Object.assign(fs, { writeSync })
}

describe("a folder", () => {
  it("is created, for its user alone", async () => {
    const path = join(temporaryFolder(), "a", "b")
    const folder = await lockFolder(path)
    expect(folder.path).toBe(path)
    folder.release()
  })

  it("has a database that refuses the statements of sessions that end after it", async () => {
    const folder = await lockFolder(await folderWithDatabase())
    const engine = await openEngine(folder, false)
    const rollBack = () => engine.run(Buffer.from("Q\0\0\0\rROLLBACK\0"), () => undefined)
    await rollBack()
    const closed = engine.close()
    await expect(rollBack()).rejects.toThrow("The database has stopped")
    await closed
    await expect(rollBack()).rejects.toThrow("The database has stopped")
    folder.release()
  })

  it("is refused to others while it is in use, with the process that has it", async () => {
    const path = temporaryFolder()
    const folder = await lockFolder(path)
    const message = `The folder ${path} is in use by process ${process.pid}. One process at a time can use it.`
    await expect(opening(path)).rejects.toMatchObject({ _tag: "FolderUnusable", message })
    folder.release()
    ;(await lockFolder(path)).release()
  })

  it("is refused if it cannot be used, with the reason", async () => {
    const path = join(temporaryFolder(), "file")
    writeFileSync(path, "")
    await expect(opening(path)).rejects.toMatchObject({
      _tag: "FolderUnusable",
      message: expect.stringMatching(/^The folder .*file cannot be used: .*EEXIST/),
    })
  })

  it.each([
    // What webpack and esbuild bundles throw, as modules and as CommonJS.
    Object.assign(new TypeError("Received an instance of URL"), { code: "ERR_INVALID_ARG_TYPE" }),
    Object.assign(new Error("no such file"), { code: "ENOENT", path: "/app/dist/pglite.data" }),
    Object.assign(new TypeError("Invalid URL"), { code: "ERR_INVALID_URL" }),
  ])("is refused with what cures a bundle with PGlite in it: $code", (cause) => {
    const { message } = folderUnusable("./data", cause)
    expect(message).toContain('serverExternalPackages: ["@electric-sql/pglite"]')
    expect(message).toContain(cause.message)
    const missing = Object.assign(new Error("no such file"), { code: "ENOENT", path: "/data/base" })
    expect(folderUnusable("./data", missing).message).toBe(
      "The folder ./data cannot be used: no such file",
    )
  })

  it("is opened by a PGlite that webpack has left out of its bundles", () => {
    const source = readFileSync(new URL("../src/engine.ts", import.meta.url), "utf8")
    const imports = source.match(/\bimport\([^)]*\)/g)
    expect(imports).toHaveLength(2)
    for (const one of imports ?? []) expect(one).toContain("/* webpackIgnore: true */")
  })

  it("that is refused is not in use", async () => {
    const path = temporaryFolder()
    mkdirSync(join(path, "database"))
    writeFileSync(join(path, "lock"), "")
    await expect(opening(path)).rejects.toMatchObject({ _tag: "FolderUnusable" })
    ;(await lockFolder(path)).release()
  })

  it("is refused if its database does not wait for the disk", async () => {
    const path = await folderWithDatabase()
    const standard = PGlite.defaultStartParams.length
    PGlite.defaultStartParams.push("-c", "fsync=off")
    try {
      await expect(opening(path)).rejects.toMatchObject({
        _tag: "FolderUnusable",
        message: expect.stringContaining("does not wait for the disk"),
      })
    } finally {
      PGlite.defaultStartParams.length = standard
    }
  })

  it("is not ready while its disk is full, and then it is again", async () => {
    const tenure = await opening(await folderWithDatabase())
    await tenure.memberships.createProject("p1")
    const granting = () =>
      tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: 4_000_000_000_000 })
    const makeRoom = fillDisk()
    onTestFinished(makeRoom)
    await expect(granting()).rejects.toMatchObject({ _tag: "StoreUnavailable" })
    expect(await tenure.isReady()).toBe(false)
    makeRoom()
    await expect.poll(tenure.isReady).toBe(true)
    await granting()
    await tenure.close()
  })

  it("leaves turns to the rest of the process", async () => {
    const tenure = await opening(await folderWithDatabase())
    const told = new AbortController()
    setTimeout(() => told.abort())
    const deadline = performance.now() + 3000
    while (!told.signal.aborted && performance.now() < deadline)
      await tenure.memberships.listProjects()
    expect(told.signal.aborted).toBe(true)
    await tenure.close()
  })

  it("needs a path", async () => {
    await expect(opening("")).rejects.toMatchObject({ _tag: "InvalidInput", field: "path" })
  })
})
