/** A bundled server as a process, which faults can kill, stop and restart. */

import { type ChildProcess, spawn } from "node:child_process"
import { readFile, readdir, rename, rm, writeFile } from "node:fs/promises"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { now } from "../clock.ts"
import type { Exit, Holding, Sample } from "../history.ts"

const skewedClock = fileURLToPath(new URL("./skewed-clock.js", import.meta.url))

const tellingHeap = fileURLToPath(new URL("./telling-heap.js", import.meta.url))

/** Limits that no run reaches. */
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

/** Returns what a process on this machine holds. */
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

/** Makes a server that is not started yet. Without `clock`, its clock is right. */
export const makeServer = (
  name: string,
  program: string,
  port: number,
  environment: Readonly<Record<string, string>>,
  clock?: Clock,
  heapFile?: string,
) => {
  const exits: Array<Exit> = []
  let log = ""
  let child: ChildProcess | undefined
  let ended: Promise<Pick<Exit, "code" | "signal">> = Promise.resolve({ code: 0, signal: null })

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
    /** Everything that it has printed. */
    log: () => log,
    processId: () => child?.pid ?? 0,
    /** Starts it, again and again until it listens, as a supervisor does. */
    start: async (): Promise<void> => {
      while (!(await startOnce())) await sleep(restartMillis)
    },
    kill: async (): Promise<void> => {
      child?.kill("SIGKILL")
      await ended
    },
    /** Asks it to end, and waits until it has. */
    terminate: async (): Promise<Exit> => {
      const asked = now()
      child?.kill("SIGTERM")
      const timer = setTimeout(() => child?.kill("SIGKILL"), patienceMillis)
      const { code, signal } = await ended
      clearTimeout(timer)
      const exit = { process: name, code, signal, millis: now() - asked }
      exits.push(exit)
      return exit
    },
    /** What every `terminate` has returned. */
    exits: (): ReadonlyArray<Exit> => exits,
    standStill: () => void child?.kill("SIGSTOP"),
    proceed: () => void child?.kill("SIGCONT"),
    /** Sets its clock off by milliseconds, beside what it is off all the time. */
    shiftClock: async (millis: number): Promise<void> => {
      if (clock === undefined) return
      // The process reads the file at any time, and never in part.
      await writeFile(`${clock.file}.new`, String(clock.offset + millis))
      await rename(`${clock.file}.new`, clock.file)
    },
    holding: () => holdingOf(child?.pid ?? 0),
    /**
     * Has it collect its garbage, and returns what it holds then. It must listen. Without `heapFile`, or if it does not
     * answer, returns nothing.
     */
    sample: async (): Promise<Sample | undefined> => {
      const id = child?.pid
      if (heapFile === undefined || child === undefined || id === undefined) return undefined
      await rm(heapFile, { force: true })
      child.kill("SIGUSR2")
      const deadline = now() + tellingMillis
      while (now() < deadline) {
        const text = await readFile(heapFile, "utf8").catch(() => undefined)
        if (text !== undefined) {
          return { process: name, id, at: now(), heapBytes: Number(text), ...(await holdingOf(id)) }
        }
        await sleep(20)
      }
      return undefined
    },
  }
}

export type Server = ReturnType<typeof makeServer>
