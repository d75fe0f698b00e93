/**
 * A program outliving its parent. When its standard input ends, it stops the server and removes the
 * server's folder. The input ends when the parent closes it or ends for any reason, including `kill
 * -9`.
 */

import { once } from "node:events"
import { existsSync, readFileSync } from "node:fs"
import { rm } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"

const [folder = ""] = process.argv.slice(2)
const processFile = join(folder, "data", "postmaster.pid")

/** Returns the server's process id, negative while the data is being created. */
const serverProcess = (): number | undefined => {
  try {
    return Math.abs(Number.parseInt(readFileSync(processFile, "utf8"), 10))
  } catch {
    return undefined
  }
}

const send = (id: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(id, signal)
  } catch {
    // The process has ended already.
  }
}

/** Stops the server immediately, even if it is suspended. Its data is not needed again. */
const stopServer = async (): Promise<void> => {
  const id = serverProcess()
  if (id === undefined) return
  send(id, "SIGCONT")
  send(id, "SIGQUIT")
  const deadline = Date.now() + 10_000
  // The server removes its process file last.
  while (existsSync(processFile)) {
    if (Date.now() > deadline) return send(id, "SIGKILL")
    await sleep(10)
  }
}

// A signal meant for the parent must not stop the clean-up.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {})

await once(process.stdin.resume(), "close")
await stopServer()
await rm(folder, { recursive: true, force: true, maxRetries: 10 })
