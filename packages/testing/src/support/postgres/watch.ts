/** Starts the watchdog, the process that cleans up after a server. */

import { spawn } from "node:child_process"
import { once } from "node:events"
import { tmpdir } from "node:os"
import { extname } from "node:path"
import { fileURLToPath } from "node:url"

/** A running watchdog. */
export interface Watchdog {
  /** Cleans up now, and returns when that is done. */
  readonly release: () => Promise<void>
}

// TypeScript in development, JavaScript in the published package.
const program = new URL(`watchdog${extname(import.meta.url)}`, import.meta.url)

/**
 * Starts a process that stops the server in the given folder and removes the folder, when it is
 * released or when the current process ends.
 *
 * It needs no exit hook and no signal handler, and does not keep the current process running.
 */
export const watch = async (folder: string): Promise<Watchdog> => {
  const watchdog = spawn(process.execPath, [fileURLToPath(program), folder], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
    cwd: tmpdir(),
    env: { ...process.env, NODE_OPTIONS: "" },
  })
  const ended = once(watchdog, "exit")
  await once(watchdog, "spawn")
  watchdog.unref()
  return {
    release: async () => {
      watchdog.ref()
      watchdog.stdin.end()
      await ended
    },
  }
}
