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
import { refused } from "./in-process.ts"
import { useServer } from "./server.ts"

const { begin } = useServer()

const bad = "user_id,end_date\n1,2098-01-01\na b,2098-01-01\n"
const good = bad.replace("a b", "2")

describe("the lines that are refused", () => {
  it.each<readonly [string, (input: string, other: string) => string]>([
    ["its own name", (input) => input],
    ["another spelling", (input) => relative(process.cwd(), input)],
    [
      "a symbolic link",
      (input, other) => {
        symlinkSync(input, other)
        return other
      },
    ],
    [
      "a hard link",
      (input, other) => {
        linkSync(input, other)
        return other
      },
    ],
  ])("never replace the file with the members: %s", async (_, nameOf) => {
    const { fileWith, pathOf, print, run } = await begin()
    const input = fileWith("members.csv", bad)
    const ended = await run`members import ${input} --refused ${nameOf(input, pathOf("other"))}`
    expect(ended).toMatchObject(refused(2, "is the file with the members"))
    expect(readFileSync(input, "utf8")).toBe(bad)
    expect(await print`members list`).toBe("There are none.\n")
  })

  it("replace those of an earlier run, also if there are none", async () => {
    const { fileWith, folder, print, run } = await begin()
    const input = fileWith("members.csv", bad)
    const file = fileWith("members.csv.refused", "earlier\n")
    expect(await run`members import ${input}`).toMatchObject({ code: 1 })
    expect(readFileSync(file, "utf8")).toMatch(/^{"line":3,.*}\n$/)
    writeFileSync(input, good)
    await print`members import ${input}`
    expect(readdirSync(folder)).toEqual(["members.csv"])
  })

  it.runIf(process.platform === "linux")("go to a pipe, which stays", async () => {
    const { fileWith, pathOf, run } = await begin()
    const [input, fifo] = [fileWith("members.csv", bad), pathOf("fifo")]
    await promisify(execFile)("mkfifo", [fifo])
    const reading = promisify(execFile)("cat", [fifo])
    onTestFinished(() => void reading.child.kill())
    await run`members import ${input} --refused ${fifo}`
    expect((await reading).stdout).toContain(`"line":3`)
    writeFileSync(input, good)
    await run`members import ${input} --refused ${fifo}`
    expect(statSync(fifo).isFIFO()).toBe(true)
  })
})

describe("an export", () => {
  it("keeps the permissions of the file that it replaces, and the link to it", async () => {
    const { folder, pathOf, print } = await begin()
    writeFileSync(pathOf("secret.csv"), "earlier\n", { mode: 0o600 })
    symlinkSync("secret.csv", pathOf("link.csv"))
    symlinkSync("new.csv", pathOf("dangling.csv"))
    for (const name of ["link.csv", "dangling.csv"]) await print`members export -o ${pathOf(name)}`
    expect(statSync(pathOf("secret.csv")).mode & 0o777).toBe(0o600)
    for (const name of ["secret.csv", "new.csv"])
      expect(readFileSync(pathOf(name), "utf8")).toBe(
        "user_id,end_date,through,time_zone,kept_day,paused_at,resumes_at,state,metadata\n",
      )
    const names = ["dangling.csv", "link.csv", "new.csv", "secret.csv"]
    expect(readdirSync(folder).toSorted()).toEqual(names)
  })

  it.each(["folder", "none/members.csv"])("says that it cannot write %s", async (name) => {
    const { pathOf, run } = await begin()
    mkdirSync(pathOf("folder"))
    const told = `The file ${pathOf(name)} cannot be used`
    expect(await run`members export -o ${pathOf(name)}`).toMatchObject(refused(1, told))
    expect(readdirSync(pathOf("folder"))).toEqual([])
  })
})
