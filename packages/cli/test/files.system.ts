/**
 * The files that the command writes are whole, whenever its process is killed, and it reads and writes what a shell gives
 * it. `KILLS=200 npm run test:system -- cli/test/files` kills it more often.
 */

import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { promisify } from "node:util"
import * as FastCheck from "fast-check"
import { describe, expect, it, onTestFinished } from "vitest"
import { bareEnvironment, binary, command } from "./programs.ts"
import { useProjects } from "./projects.ts"
import { startProxy } from "./proxy.ts"

const { begin, url } = useProjects()

const date = "2098-01-01T00:00:00.000Z"

it("the lines that are refused never replace standard input", async () => {
  const { environment, pathOf } = await begin()
  const input = pathOf("members.csv")
  writeFileSync(input, "user_id,end_date\na b,2098-01-01\n")
  const line = `${binary} members import - --refused ${input} < ${input}`
  const env = { ...bareEnvironment, ...environment }
  await expect(promisify(execFile)("/bin/sh", ["-c", line], { env })).rejects.toMatchObject({
    code: 2,
  })
  expect(readFileSync(input, "utf8")).toBe("user_id,end_date\na b,2098-01-01\n")
})

it.runIf(process.platform === "linux")(
  "an export goes to pipes and to standard output",
  async () => {
    const { environment, folder, pathOf } = await begin()
    const env = { ...bareEnvironment, ...environment }
    const all = `${binary} members export -o`
    const lines = [
      `(echo before; ${all} /dev/stdout; echo after) >> ${pathOf("out")}`,
      `${all} /dev/stdout | cat > ${pathOf("piped")}`,
      `mkfifo ${pathOf("fifo")}; ${all} ${pathOf("fifo")} & cat < ${pathOf("fifo")} > ${pathOf("read")}; wait`,
    ]
    for (const line of lines) await promisify(execFile)("/bin/sh", ["-c", line], { env })
    const head = "user_id,end_date,state,metadata\n"
    expect(readFileSync(pathOf("out"), "utf8")).toBe(`before\n${head}after\n`)
    for (const name of ["piped", "read"]) expect(readFileSync(pathOf(name), "utf8")).toBe(head)
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
  environment: Readonly<Record<string, string>>,
  ...args: ReadonlyArray<string>
) => {
  const [node = "", ...rest] = command(...args)
  let left = requests
  const proxy = await startProxy(url(), () => {
    if (left-- === 0) void setTimeout(delay).then(() => child.kill(signal))
    return "passed"
  })
  const env = { ...bareEnvironment, ...environment, TENURE_URL: proxy }
  const child = spawn(node, rest, { env, stdio: "ignore" })
  onTestFinished(() => void child.kill("SIGKILL"))
  await once(child, "close")
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
  if (signal === "SIGKILL")
    for (const name of readdirSync(folder).filter((one) => one.endsWith(".part")))
      rmSync(join(folder, name))
  expect(readdirSync(folder).filter((name) => name.endsWith(".part"))).toEqual([])
}

describe("a command that is killed", { timeout }, () => {
  const total = 21_000

  // Three parts, with lines that are refused in each of them.
  const isBad = (index: number): boolean => index % 1000 === 7
  const lines = Array.from({ length: total }, (_, index) =>
    isBad(index) ? `user ${index},${date}` : `${100_000 + index},${date}`,
  )
  const text = ["user_id,end_date", ...lines, ""].join("\n")
  const members = lines.filter((_, index) => !isBad(index)).map((line) => `${line},active,`)
  const exported = ["user_id,end_date,state,metadata", ...members, ""].join("\n")
  const numbers = lines.flatMap((_, index) => (isBad(index) ? [index + 2] : []))

  const numbersIn = (refused: string): ReadonlyArray<number> =>
    refused
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).line)

  it("imports every member once in the end, and its files are the old or the new ones", async () => {
    await FastCheck.assert(
      FastCheck.asyncProperty(kills, async (all) => {
        const { environment, folder, pathOf, tenure } = await begin()
        const [input, refused] = [pathOf("members.csv"), pathOf("bad.json")]
        writeFileSync(input, text)
        writeFileSync(refused, "earlier\n")
        for (const kill of all) {
          await runUntil(kill, environment, "members", "import", input, "--refused", refused)
          expect(readFileSync(input, "utf8")).toBe(text)
          expectNoDrafts(folder, kill)
          const found = readFileSync(refused, "utf8")
          if (found !== "earlier\n") expect(numbersIn(found)).toEqual(numbers)
        }
        const last = await tenure("members", "import", input, "--refused", refused, "--json")
        expect(last.code).toBe(1)
        expect(JSON.parse(last.stdout)).toMatchObject({
          members: members.length,
          refused: numbers.length,
        })
        expect(numbersIn(readFileSync(refused, "utf8"))).toEqual(numbers)
        expect(readFileSync(input, "utf8")).toBe(text)
        const list = await tenure("members", "export", "-o", pathOf("all.csv"))
        expect(list.code).toBe(0)
        expect(readFileSync(pathOf("all.csv"), "utf8")).toBe(exported)
        for (const id of ["100000", "112000", "120999"]) {
          const { stdout } = await tenure("members", "history", id, "--json")
          expect(stdout.trim().split("\n")).toHaveLength(1)
        }
      }),
      settings,
    )
  })

  it("leaves the earlier export, or has the new one", async () => {
    const { environment, folder, pathOf, tenure } = await begin()
    writeFileSync(pathOf("members.csv"), text)
    await tenure("members", "import", pathOf("members.csv"))
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
    expect(await tenure("members", "export", "-o", output)).toMatchObject({ code: 0 })
    expect(readFileSync(output, "utf8")).toBe(exported)
  })
})
