/**
 * The files that the command writes are whole, whenever it ends. `KILLS=200 npm test -- cli/test/files` kills
 * it more often.
 */

import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import * as Http from "node:http"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { setTimeout } from "node:timers/promises"
import { promisify } from "node:util"
import { freePort } from "@tenure/testing/conformance"
import * as FastCheck from "fast-check"
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest"
import { tenureWith } from "./in-process.ts"
import { bareEnvironment, binary, command } from "./programs.ts"
import { type Server, startServer, token } from "./server.ts"

let server: Server
let parent: string

beforeAll(async () => {
  parent = mkdtempSync(join(tmpdir(), "tenure-files-"))
  server = await startServer()
})

afterAll(async () => {
  await server.stop()
  rmSync(parent, { recursive: true })
})

let count = 0

/** Makes a folder and a project. */
const begin = async () => {
  count += 1
  const folder = join(parent, String(count))
  mkdirSync(folder)
  const environment = {
    TENURE_URL: server.url,
    TENURE_TOKEN: token,
    TENURE_PROJECT: `files-${count}`,
  }
  const tenure = tenureWith(environment)
  expect(await tenure("projects", "create", environment.TENURE_PROJECT)).toMatchObject({ code: 0 })
  return { folder, environment, tenure, pathOf: (name: string) => join(folder, name) }
}

const date = "2098-01-01T00:00:00.000Z"

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

  it("never replace standard input", async () => {
    const { environment, pathOf } = await begin()
    const input = pathOf("members.csv")
    writeFileSync(input, bad)
    const line = `${binary} members import - --refused ${input} < ${input}`
    const env = { ...bareEnvironment, ...environment }
    await expect(promisify(execFile)("/bin/sh", ["-c", line], { env })).rejects.toMatchObject({
      code: 2,
    })
    expect(readFileSync(input, "utf8")).toBe(bad)
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

  it.runIf(process.platform === "linux")("goes to pipes and to standard output", async () => {
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

/** Passes requests on, and calls a function when as many have been answered. */
const startCounting = async (answers: number, onReached: () => void) => {
  let left = answers
  const proxy = Http.createServer((request, response) => {
    const { headers, method = "GET", url: path = "/" } = request
    if (left-- === 0) onReached()
    const onward = Http.request(new URL(path, server.url), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(response)
    })
    onward.on("error", () => request.socket.destroy())
    request.pipe(onward)
  })
  const port = await freePort()
  await new Promise<void>((resolve) => proxy.listen(port, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      proxy.closeAllConnections()
      proxy.close()
    },
  }
}

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
  const proxy = await startCounting(requests, () => {
    void setTimeout(delay).then(() => child.kill(signal))
  })
  const env = { ...bareEnvironment, ...environment, TENURE_URL: proxy.url }
  const child = spawn(node, rest, { env, stdio: "ignore" })
  onTestFinished(() => void child.kill("SIGKILL"))
  await once(child, "close")
  proxy.close()
}

const kills = FastCheck.array(
  FastCheck.record({
    signal: FastCheck.constantFrom("SIGINT", "SIGTERM", "SIGKILL"),
    requests: FastCheck.nat({ max: 2 }),
    delay: FastCheck.nat({ max: 60 }),
  }),
  { minLength: 1, maxLength: 2 },
)

const fewKills = process.env["THOROUGH"] === "1" ? 3 : 1

const settings = { numRuns: Number(process.env["KILLS"] ?? fewKills), endOnFailure: true }

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
