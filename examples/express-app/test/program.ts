/** Starts the backend as its operator does. */

import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url))

const { NODE_COMPILE_CACHE } = process.env

/** A backend that is listening. */
export interface Backend {
  readonly url: string
  /** Sends SIGTERM, and returns the exit code. */
  readonly stop: () => Promise<number | null>
}

/** Starts the backend on a free port. */
export const startBackend = (environment: Readonly<Record<string, string>>): Promise<Backend> => {
  const child = spawn(process.execPath, ["-C", "@tenure/source", main], {
    env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE, PORT: "0", ...environment },
    stdio: ["ignore", "pipe", "inherit"],
  })
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve))
  const stop = () => {
    child.kill("SIGTERM")
    return ended
  }
  return new Promise((resolve, reject) => {
    createInterface(child.stdout).on("line", (line) => {
      const { address, message } = JSON.parse(line)
      if (message === "listening") resolve({ url: `http://127.0.0.1:${address.port}`, stop })
    })
    void ended.then((code) => reject(new Error(`the backend exited with code ${code}`)))
  })
}
