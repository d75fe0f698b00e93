/** The files that the command writes, and those that it leaves as they are. */

import { execFile } from "node:child_process"
import {
  linkSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { relative } from "node:path"
import { promisify } from "node:util"
import { describe, expect, it, onTestFinished } from "vitest"
import { useProjects } from "./projects.ts"

const { begin } = useProjects()

const bad = "user_id,end_date\n1,2098-01-01\na b,2098-01-01\n"

describe("the lines that are refused", () => {
  const others: Readonly<Record<string, (input: string) => string>> = {
    "its own name": (input) => input,
    "another spelling": (input) => relative(process.cwd(), input),
    "a symbolic link": (input) => {
      symlinkSync(input, `${input}.link`)
      return `${input}.link`
    },
    "a hard link": (input) => {
      linkSync(input, `${input}.hard`)
      return `${input}.hard`
    },
  }

  it.each(Object.keys(others))("never replace the file with the members: %s", async (name) => {
    const { pathOf, tenure } = await begin()
    const input = pathOf("members.csv")
    writeFileSync(input, bad)
    const refused = others[name]?.(input) ?? ""
    expect(await tenure("members", "import", input, "--refused", refused)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("is the file with the members"),
    })
    expect(readFileSync(input, "utf8")).toBe(bad)
    expect((await tenure("members", "list")).stdout).toBe("There are none.\n")
  })

  it("replace those of an earlier run, also if there are none", async () => {
    const { folder, pathOf, tenure } = await begin()
    const [input, refused] = [pathOf("members.csv"), pathOf("members.csv.refused")]
    writeFileSync(input, bad)
    writeFileSync(refused, "earlier\n")
    expect(await tenure("members", "import", input)).toMatchObject({ code: 1 })
    expect(readFileSync(refused, "utf8")).toMatch(/^{"line":3,.*}\n$/)
    writeFileSync(input, bad.replace("a b", "2"))
    expect(await tenure("members", "import", input)).toMatchObject({ code: 0 })
    expect(readdirSync(folder)).toEqual(["members.csv"])
  })

  it.runIf(process.platform === "linux")("go to a pipe, which stays", async () => {
    const { pathOf, tenure } = await begin()
    const [input, fifo] = [pathOf("members.csv"), pathOf("fifo")]
    await promisify(execFile)("mkfifo", [fifo])
    writeFileSync(input, bad)
    const reading = promisify(execFile)("cat", [fifo])
    onTestFinished(() => void reading.child.kill())
    await tenure("members", "import", input, "--refused", fifo)
    expect((await reading).stdout).toContain(`"line":3`)
    writeFileSync(input, bad.replace("a b", "2"))
    await tenure("members", "import", input, "--refused", fifo)
    expect(statSync(fifo).isFIFO()).toBe(true)
  })
})

/** In the order of their ids. */
const users = ['"', "#?/a", "'a';b", "1001", "a,b", 'a,"b"', "auth0|1", "gid://a/B/1", "~%2F\\"]

describe("an export", () => {
  it.each(["members.csv", "members.ndjson"])(
    "has any user id, and an import reads it again: %s",
    async (name) => {
      const { pathOf, tenure } = await begin()
      for (const id of users) {
        const grant = ["members", "grant", "--", id, "2099-01-01T00:00:00.000Z"]
        expect(await tenure(...grant)).toMatchObject({ code: 0 })
      }
      const exported = pathOf(name)
      expect(await tenure("members", "export", "-o", exported)).toMatchObject({ code: 0 })
      const other = await begin()
      expect(await other.tenure("members", "import", exported)).toMatchObject({ code: 0 })
      const { stdout } = await other.tenure("members", "list", "--json")
      const ids = stdout
        .trim()
        .split("\n")
        .map((line) => String(JSON.parse(line).user_id))
      expect(ids).toEqual(users.toSorted())
    },
  )

  it("keeps the permissions of the file that it replaces, and the link to it", async () => {
    const { folder, pathOf, tenure } = await begin()
    writeFileSync(pathOf("secret.csv"), "earlier\n", { mode: 0o600 })
    symlinkSync("secret.csv", pathOf("link.csv"))
    symlinkSync("new.csv", pathOf("dangling.csv"))
    for (const name of ["link.csv", "dangling.csv"])
      expect(await tenure("members", "export", "-o", pathOf(name))).toMatchObject({ code: 0 })
    expect(statSync(pathOf("secret.csv")).mode & 0o777).toBe(0o600)
    for (const name of ["secret.csv", "new.csv"])
      expect(readFileSync(pathOf(name), "utf8")).toBe("user_id,end_date,state,metadata\n")
    const names = ["dangling.csv", "link.csv", "new.csv", "secret.csv"]
    expect(readdirSync(folder).toSorted()).toEqual(names)
  })

  it("says which file it cannot write, and leaves nothing", async () => {
    const { pathOf, tenure } = await begin()
    mkdirSync(pathOf("folder"))
    for (const name of ["folder", "none/members.csv"])
      expect(await tenure("members", "export", "-o", pathOf(name))).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(`The file ${pathOf(name)} cannot be used`),
      })
    expect(readdirSync(pathOf("folder"))).toEqual([])
  })
})
