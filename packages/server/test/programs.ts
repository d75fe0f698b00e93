/** Starts the bundled server and the receiver as programs. */

import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { inject } from "vitest"

declare module "vitest" {
  interface ProvidedContext {
    readonly serverFile: string
  }
}

const { NODE_COMPILE_CACHE } = process.env

const receiver = fileURLToPath(
  new URL("../../../examples/webhook-receiver/src/main.ts", import.meta.url),
)

/** The arguments to Node for each program. */
const programs = {
  "node-server": [inject("serverFile")],
  "webhook-receiver": ["-C", "@tenure/source", receiver],
}

/** The exit code and output of a program that has ended. */
interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A running program. */
export interface Program {
  /** Waits for a matching line in the output. */
  readonly line: (pattern: RegExp) => Promise<RegExpExecArray>
  /** The output so far, in lines. */
  readonly lines: ReadonlyArray<string>
  readonly kill: (signal: NodeJS.Signals) => void
  readonly ended: Promise<Ended>
}

const running = new Set<Program>()

/** Starts a program with the given environment alone. Without `DATABASE_URL`, its data are in memory. */
export const start = (
  name: keyof typeof programs,
  environment: Readonly<Record<string, string>>,
  args: ReadonlyArray<string> = [],
): Program => {
  const child = spawn(process.execPath, [...programs[name], ...args], {
    env: {
      PATH: process.env["PATH"],
      NODE_COMPILE_CACHE,
      DATABASE_URL: "memory:",
      ...environment,
    },
    stdio: ["ignore", "pipe", "pipe"],
  })
  const lines: Array<string> = []
  const waiting = new Set<(line: string) => void>()
  let stderr = ""
  createInterface(child.stdout).on("line", (line) => {
    lines.push(line)
    for (const check of waiting) check(line)
  })
  child.stderr.on("data", (chunk) => (stderr += String(chunk)))
  const program: Program = {
    lines,
    kill: (signal) => child.kill(signal),
    ended: new Promise((resolve) => {
      child.on("close", (code) => {
        running.delete(program)
        resolve({ code, stdout: lines.join("\n"), stderr })
      })
    }),
    line: (pattern) =>
      new Promise((resolve, reject) => {
        const check = (line: string): void => {
          const match = pattern.exec(line)
          if (match === null) return
          waiting.delete(check)
          resolve(match)
        }
        waiting.add(check)
        for (const line of lines) check(line)
        void program.ended.then(({ stderr: reason }) =>
          reject(new Error(`the program ended: ${reason}`)),
        )
      }),
  }
  running.add(program)
  return program
}

/** A server that is listening. */
export interface Server extends Program {
  readonly url: string
}

/** Starts the bundled server on a free port, and waits until it listens. */
export const startServer = async (
  environment: Readonly<Record<string, string>> = {},
): Promise<Server> => {
  const program = start("node-server", { PORT: "0", ...environment })
  const [, url = ""] = await program.line(/Tenure listens on ([^\s"]+)/)
  return { ...program, url }
}

/** Kills all running programs. */
export const endAll = async (): Promise<void> => {
  const all = [...running]
  for (const program of all) program.kill("SIGKILL")
  await Promise.all(all.map(({ ended }) => ended))
}
