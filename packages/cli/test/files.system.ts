/**
 * The files that the command writes are whole, whenever its process is killed, and it reads and writes what a shell gives
 * it. `KILLS=200 npm run test:system -- cli/test/files` kills it more often.
 */

import { readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { memory } from "@tenure/memory"
import * as FastCheck from "fast-check"
import { describe, expect, it } from "vitest"
import { type Environment, jsonLines } from "./in-process.ts"
import { shell, startCommand } from "./programs.ts"
import { startProxy, useServer } from "./server.ts"

// With all members' changes.
const { begin, url } = useServer({ stores: memory({ history: 1_000_000 }) })

const date = "2098-01-01T00:00:00.000Z"
const head = "user_id,end_date,through,time_zone,kept_day,paused_at,resumes_at,state,metadata"

it("the lines that are refused never replace standard input", async () => {
  const { environment, fileWith } = await begin()
  const text = "user_id,end_date\na b,2098-01-01\n"
  const input = fileWith("members.csv", text)
  const line = `tenure members import - --refused ${input} < ${input}`
  expect(await shell(line, environment)).toMatchObject({ code: 2 })
  expect(readFileSync(input, "utf8")).toBe(text)
})

it.runIf(process.platform === "linux")(
  "an export goes to pipes and to standard output",
  async () => {
    const { environment, folder, pathOf } = await begin()
    for (const line of [
      "(echo before; tenure members export -o /dev/stdout; echo after) >> out",
      "tenure members export -o /dev/stdout | cat > piped",
      "mkfifo fifo; tenure members export -o fifo & cat < fifo > read; wait",
    ])
      expect(await shell(line, environment, folder)).toMatchObject({ code: 0 })
    expect(readFileSync(pathOf("out"), "utf8")).toBe(`before\n${head}\nafter\n`)
    for (const name of ["piped", "read"])
      expect(readFileSync(pathOf(name), "utf8")).toBe(`${head}\n`)
    expect(readdirSync(folder).toSorted()).toEqual(["fifo", "out", "piped", "read"])
  },
)

interface Kill {
  readonly signal: "SIGINT" | "SIGTERM" | "SIGKILL"
  /** How many requests are answered before. */
  readonly requests: number
  /** How long after the next one it comes, in milliseconds. */
  readonly delay: number
}

/** Runs the command until it is killed, or ends before. */
const runUntil = async (
  { delay, requests, signal }: Kill,
  environment: Environment,
  ...args: ReadonlyArray<string>
) => {
  let left = requests
  const proxy = await startProxy(url(), () => {
    if (left-- === 0) void setTimeout(delay).then(() => child.kill(signal))
    return "passed"
  })
  const { child, ended } = startCommand({ ...environment, TENURE_URL: proxy }, ...args)
  await ended
}

const kills = FastCheck.array(
  FastCheck.record({
    signal: FastCheck.constantFrom("SIGINT", "SIGTERM", "SIGKILL"),
    requests: FastCheck.nat({ max: 2 }),
    delay: FastCheck.nat({ max: 60 }),
  }),
  { minLength: 1, maxLength: 2 },
)

const settings = { numRuns: Number(process.env["KILLS"] ?? 3), endOnFailure: true }

const timeout = 120_000 + settings.numRuns * 20_000

/** What a process leaves if it could clean up. */
const expectNoDrafts = (folder: string, { signal }: Kill) => {
  const drafts = readdirSync(folder).filter((name) => name.endsWith(".part"))
  if (signal === "SIGKILL") for (const name of drafts) rmSync(join(folder, name))
  else expect(drafts).toEqual([])
}

describe("a command that is killed", { timeout }, () => {
  // Three parts, each with refused lines.
  const isBad = (index: number): boolean => index % 1000 === 7
  const lines = Array.from({ length: 21_000 }, (_, index) =>
    isBad(index) ? `user ${index},${date}` : `${100_000 + index},${date}`,
  )
  const text = ["user_id,end_date", ...lines, ""].join("\n")
  const members = lines.filter((_, index) => !isBad(index)).map((line) => `${line},,,,,,active,`)
  const exported = [head, ...members, ""].join("\n")
  const numbers = lines.flatMap((_, index) => (isBad(index) ? [index + 2] : []))

  const numbersIn = (file: string) => jsonLines(file).map(({ line }) => line)

  it("imports every member once in the end, and its files are the old or the new ones", async () => {
    await FastCheck.assert(
      FastCheck.asyncProperty(kills, async (all) => {
        const { environment, fileWith, folder, lines: list, pathOf, print, run } = await begin()
        const input = fileWith("members.csv", text)
        const refused = fileWith("bad.json", "earlier\n")
        for (const kill of all) {
          await runUntil(kill, environment, "members", "import", input, "--refused", refused)
          expect(readFileSync(input, "utf8")).toBe(text)
          expectNoDrafts(folder, kill)
          const found = readFileSync(refused, "utf8")
          if (found !== "earlier\n") expect(numbersIn(found)).toEqual(numbers)
        }
        const last = await run`members import ${input} --refused ${refused} --json`
        expect(last.code).toBe(1)
        const counted = { members: members.length, refused: numbers.length }
        expect(JSON.parse(last.stdout)).toMatchObject(counted)
        expect(numbersIn(readFileSync(refused, "utf8"))).toEqual(numbers)
        expect(readFileSync(input, "utf8")).toBe(text)
        await print`members export -o ${pathOf("all.csv")}`
        expect(readFileSync(pathOf("all.csv"), "utf8")).toBe(exported)
        for (const id of ["100000", "112000", "120999"])
          expect(await list`members history ${id}`).toHaveLength(1)
      }),
      settings,
    )
  })

  it("leaves the earlier export, or has the new one", async () => {
    const { environment, fileWith, folder, pathOf, print, run } = await begin()
    await run`members import ${fileWith("members.csv", text)}`
    const output = pathOf("all.csv")
    await FastCheck.assert(
      FastCheck.asyncProperty(kills, FastCheck.nat({ max: 22 }), async (all, later) => {
        for (const one of all) {
          writeFileSync(output, "earlier\n")
          const kill = { ...one, requests: one.requests + later }
          await runUntil(kill, environment, "members", "export", "-o", output)
          expect(["earlier\n", exported]).toContain(readFileSync(output, "utf8"))
          expectNoDrafts(folder, kill)
        }
      }),
      settings,
    )
    await print`members export -o ${output}`
    expect(readFileSync(output, "utf8")).toBe(exported)
  })
})
