/** A bundled server as a process, which faults can kill, stop and restart. */

import { type ChildProcess, spawn } from "node:child_process"
import { readFile, readdir, rename, rm, writeFile } from "node:fs/promises"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { now } from "../clock.ts"
import type { Exit, Holding, Sample } from "../history.ts"

export interface Server {
  readonly name: string
  readonly url: string
  /** Everything that it has printed. */
  readonly log: () => string
  /** Starts it, again and again until it listens, as a supervisor does. */
  readonly start: () => Promise<void>
  readonly kill: () => Promise<void>
  /** Asks it to end, and waits until it has. */
  readonly terminate: () => Promise<Exit>
  /** What every `terminate` has returned. */
  readonly exits: () => ReadonlyArray<Exit>
  readonly standStill: () => void
  readonly proceed: () => void
  /** Sets its clock off by milliseconds, beside what it is off all the time. */
  readonly shiftClock: (millis: number) => Promise<void>
  readonly holding: () => Promise<Holding>
  /**
   * Has it collect its garbage, and returns what it holds then. It must listen. Without `heapFile`, or if it does not
   * answer, returns nothing.
   */
  readonly sample: () => Promise<Sample | undefined>
  readonly processId: () => number
}

const skewedClock = fileURLToPath(new URL("./skewed-clock.js", import.meta.url))

const tellingHeap = fileURLToPath(new URL("./telling-heap.js", import.meta.url))

/** Limits that the requests of a run do not reach. */
export const unlimited = {
  RATE_LIMIT_PER_KEY: "1000000",
  RATE_LIMIT_PER_IP: "1000000",
  RATE_LIMIT_BURST: "1000000",
} as const

const restartMillis = 200

// Collecting garbage takes less, also on a busy machine.
const tellingMillis = 5000

/** A process that has not ended by then is ended or left alone, so that the run goes on. */
export const patienceMillis = 40_000

/** Returns what a process of this machine holds. */
export const holdingOf = async (id: number): Promise<Holding> => {
  const status = await readFile(`/proc/${id}/status`, "utf8")
  const kilobytes = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0)
  return { bytes: 1024 * kilobytes, handles: (await readdir(`/proc/${id}/fd`)).length }
}

const running = new Set<ChildProcess>()
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL")
})

/** A clock that can be set off. */
interface Clock {
  /** How far it is off all the time, in milliseconds. */
  readonly offset: number
  /** A file that has this number. */
  readonly file: string
}

/** Waits until the process has told what its heap holds. */
const heapOf = async (child: ChildProcess, file: string): Promise<number | undefined> => {
  await rm(file, { force: true })
  child.kill("SIGUSR2")
  const deadline = now() + tellingMillis
  while (now() < deadline) {
    const text = await readFile(file, "utf8").catch(() => undefined)
    if (text !== undefined) return Number(text)
    await sleep(20)
  }
  return undefined
}

/** Makes a server that is not started yet. Without `clock`, its clock is right. */
export const makeServer = (
  name: string,
  program: string,
  port: number,
  environment: Readonly<Record<string, string>>,
  clock?: Clock,
  heapFile?: string,
): Server => {
  const exits: Array<Exit> = []
  let log = ""
  let child: ChildProcess | undefined
  let ended: Promise<{ readonly code: number | null; readonly signal: string | null }> =
    Promise.resolve({ code: 0, signal: null })

  /** Starts a process. Returns whether it listens; otherwise it has ended. */
  const startOnce = (): Promise<boolean> => {
    const telling = heapFile === undefined ? [] : ["--expose-gc", "--import", tellingHeap]
    const started = spawn(process.execPath, ["--import", skewedClock, ...telling, program], {
      env: {
        PATH: process.env["PATH"],
        ...environment,
        PORT: String(port),
        ...(clock !== undefined && { CLOCK_FILE: clock.file }),
        ...(heapFile !== undefined && { HEAP_FILE: heapFile }),
      },
      stdio: ["ignore", "pipe", "pipe"],
    })
    child = started
    running.add(started)
    started.once("exit", () => running.delete(started))
    ended = new Promise((resolve) => {
      started.on("close", (code, signal) => resolve({ code, signal }))
    })
    const listening = new Promise<boolean>((resolve) => {
      started.stdout.on("data", (chunk: Buffer) => {
        log += chunk.toString()
        if (chunk.includes("Tenure listens on")) resolve(true)
      })
    })
    started.stderr.on("data", (chunk: Buffer) => (log += chunk.toString()))
    return Promise.race([listening, ended.then(() => false)])
  }

  return {
    name,
    url: `http://127.0.0.1:${port}`,
    log: () => log,
    start: async () => {
      while (!(await startOnce())) await sleep(restartMillis)
    },
    kill: async () => {
      child?.kill("SIGKILL")
      await ended
    },
    terminate: async () => {
      const asked = now()
      child?.kill("SIGTERM")
      const timer = setTimeout(() => child?.kill("SIGKILL"), patienceMillis)
      const { code, signal } = await ended
      clearTimeout(timer)
      const exit = { process: name, code, signal, millis: now() - asked }
      exits.push(exit)
      return exit
    },
    exits: () => exits,
    standStill: () => child?.kill("SIGSTOP"),
    proceed: () => child?.kill("SIGCONT"),
    shiftClock: async (millis) => {
      if (clock === undefined) return
      // The process reads the file at any time, and never a part of it.
      await writeFile(`${clock.file}.new`, String(clock.offset + millis))
      await rename(`${clock.file}.new`, clock.file)
    },
    holding: () => holdingOf(child?.pid ?? 0),
    sample: async () => {
      const id = child?.pid
      if (heapFile === undefined || child === undefined || id === undefined) return undefined
      const heapBytes = await heapOf(child, heapFile)
      if (heapBytes === undefined) return undefined
      return { process: name, id, at: now(), heapBytes, ...(await holdingOf(id)) }
    },
    processId: () => child?.pid ?? 0,
  }
}
