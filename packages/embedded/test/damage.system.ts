/** Folders whose database is damaged: each is refused, with the reason, and stays as it is. */

import fs from "node:fs"
import { dirname, join } from "node:path"
import { beforeAll, describe, expect, it } from "vitest"
import { hasDatabase } from "../src/folder.ts"
import { copyOf, folderWithDatabase, open, temporaryFolder } from "./folders.ts"

const model = temporaryFolder()

const member = { projectId: "p1", userId: "1001", endDate: 4_000_000_000_000 }

beforeAll(async () => {
  fs.cpSync(await folderWithDatabase(), model, { recursive: true })
  const tenure = await open(model)
  await tenure.memberships.createProject("p1")
  await tenure.memberships.grant(member)
  await tenure.close()
})

const ofLock = new Set(["lock", "pid"])

/** The size and the last change for each path in a folder, except for the lock's files. */
const stateOf = (folder: string): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    fs
      .readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter(({ name, parentPath }) => parentPath !== folder || !ofLock.has(name))
      .map((entry) => {
        const path = join(entry.parentPath, entry.name)
        const { mtimeMs, size } = fs.lstatSync(path)
        return [path, entry.isFile() ? { mtimeMs, size } : "no file"]
      }),
  )

/** Damages the database at a path. */
type Damage = (database: string) => void

const damaged = (damage: Damage): string => {
  const folder = copyOf(model)
  damage(join(folder, "database"))
  return folder
}

const remove =
  (...names: ReadonlyArray<string>): Damage =>
  (database) => {
    for (const name of names) fs.rmSync(join(database, name), { recursive: true })
  }

const write =
  (name: string, content: string | Buffer): Damage =>
  (database) => {
    fs.rmSync(join(database, name), { recursive: true })
    fs.writeFileSync(join(database, name), content)
  }

const truncate =
  (name: string, length = 0): Damage =>
  (database) =>
    fs.truncateSync(join(database, name), length)

/** Empties a folder, or makes an empty one in place of a file. */
const empty =
  (name: string): Damage =>
  (database) => {
    fs.rmSync(join(database, name), { recursive: true })
    fs.mkdirSync(join(database, name))
  }

/** Leaves a single file. */
const keep =
  (name: string): Damage =>
  (database) => {
    const content = fs.readFileSync(join(database, name))
    empty(".")(database)
    fs.mkdirSync(dirname(join(database, name)), { recursive: true })
    fs.writeFileSync(join(database, name), content)
  }

const control = "global/pg_control"
const map = "global/pg_filenode.map"
const segment = "pg_wal/000000010000000000000001"

describe("a database", () => {
  it.each<[string, Damage, RegExp]>([
    ["without PG_VERSION", remove("PG_VERSION"), /damaged: the file PG_VERSION is missing/],
    ["with an empty PG_VERSION", truncate("PG_VERSION"), /damaged: the file PG_VERSION is empty/],
    ["whose PG_VERSION is a folder", empty("PG_VERSION"), /damaged: PG_VERSION is not a file/],
    ["of another version", write("PG_VERSION", "17\n"), /initialized by PostgreSQL version 17/],
    ["without pg_control", remove(control), /damaged: the file global\/pg_control is missing/],
    [
      "with an empty pg_control",
      truncate(control),
      /damaged: the file global\/pg_control is empty/,
    ],
    [
      "whose pg_control is cut off",
      truncate(control, 100),
      /could not read file "global\/pg_control"/,
    ],
    ["whose pg_control has zeros", write(control, Buffer.alloc(8192)), /incompatible/],
    [
      "without PG_VERSION and pg_control",
      remove("PG_VERSION", control),
      /damaged: the file PG_VERSION is missing/,
    ],
    ["that is an empty folder", empty("."), /damaged: the folder database is empty/],
    ["that is a file", write(".", "a file"), /damaged: database is not a folder/],
    [
      "that is a link to nowhere",
      (database) => {
        fs.rmSync(database, { recursive: true })
        fs.symlinkSync("nowhere", database)
      },
      /damaged: the folder database is missing/,
    ],
    ["with nothing but PG_VERSION", keep("PG_VERSION"), /damaged: the folder base is missing/],
    ["with nothing but pg_control", keep(control), /damaged: the folder base is/],
    ["without global", remove("global"), /damaged: the folder global is missing/],
    ["without tables", remove("base/5"), /damaged: the file base\/5\/PG_VERSION is missing/],
    ["without a log", remove("pg_wal"), /damaged: the folder pg_wal is missing/],
    ["with an empty log", empty("pg_wal"), /damaged: the folder pg_wal has no files/],
    ["whose log is cut off", truncate(segment, 8192), /could not locate a valid checkpoint/],
    ["whose log has zeros", write(segment, Buffer.alloc(16_777_216)), /valid checkpoint record/],
    ["without commits", remove("pg_xact"), /damaged: the folder pg_xact is missing/],
    ["with empty commits", empty("pg_xact"), /damaged: the folder pg_xact has no files/],
    ["without an empty folder", remove("pg_notify"), /damaged: the folder pg_notify is missing/],
    [
      "without the map of its files",
      remove(map),
      /damaged: the file global\/pg_filenode.map is missing/,
    ],
    ["without settings", remove("postgresql.conf"), /the file postgresql.conf is missing/],
  ])("%s is refused, and stays as it is", async (_, damage, reason) => {
    const folder = damaged(damage)
    const before = stateOf(folder)
    const error = await open(folder).catch((rejected) => rejected)
    expect(error).toMatchObject({
      _tag: "FolderUnusable",
      message: expect.stringMatching(reason),
    })
    expect(error.message).toMatch(
      /^The folder \S+ cannot be used: its database .*\. Restore the folder from a copy\.$/,
    )
    expect(stateOf(folder)).toEqual(before)
    expect(hasDatabase(folder)).toBe(true)
  })

  it("whose missing file is put back has all it had", async () => {
    const folder = damaged(remove("PG_VERSION"))
    await expect(open(folder)).rejects.toMatchObject({ _tag: "FolderUnusable" })
    fs.cpSync(join(model, "database", "PG_VERSION"), join(folder, "database", "PG_VERSION"))
    const tenure = await open(folder)
    expect(await tenure.memberships.find(member)).toMatchObject(member)
    await tenure.close()
  })

  it("is not created within another one", async () => {
    const database = join(copyOf(model), "database")
    await expect(open(database)).rejects.toThrow(/is a database itself. Name the folder around it/)
    expect(fs.existsSync(join(database, "database"))).toBe(false)
  })
})
