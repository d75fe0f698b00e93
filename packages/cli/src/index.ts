/** The command `tenure`. */

import { constants } from "node:os"
import { performance } from "node:perf_hooks"
import * as NodeChildProcessSpawner from "@effect/platform-node-shared/NodeChildProcessSpawner"
import * as NodeFileSystem from "@effect/platform-node-shared/NodeFileSystem"
import * as NodePath from "@effect/platform-node-shared/NodePath"
import * as NodeStdio from "@effect/platform-node-shared/NodeStdio"
import * as NodeTerminal from "@effect/platform-node-shared/NodeTerminal"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Runtime from "effect/Runtime"
import { exitCodes } from "./Failure.ts"
import { run } from "./program.ts"

const services = NodeChildProcessSpawner.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, NodeStdio.layer, NodeTerminal.layer),
  ),
)

/**
 * Ends the process when it can print nothing any more: as it should if nobody reads on, as `head` after some
 * lines, and else, for example on a full disk, with what is wrong.
 */
const endWithOutput = (): void => {
  process.stderr.on("error", () => process.exit(exitCodes.failed))
  process.stdout.on("error", (error) => {
    if ("code" in error && error.code === "EPIPE") process.exit(0)
    process.stderr.write(`${error.message}\n`)
    process.exit(exitCodes.failed)
  })
}

// npm passes the Ctrl+C of a terminal on to what has received it already: that is no second one.
const sameSignalMillis = 500

/** Runs an effect. The first signal interrupts it, and a second one ends the process at once. */
const runMain = Runtime.makeRunMain(({ fiber, teardown }) => {
  let interruptedAt: number | undefined
  const end = (name: "SIGINT" | "SIGTERM"): void => {
    if (interruptedAt === undefined) {
      interruptedAt = performance.now()
      fiber.interruptUnsafe(fiber.id)
    } else if (performance.now() - interruptedAt > sameSignalMillis) {
      process.exit(128 + constants.signals[name])
    }
  }
  process.on("SIGINT", end)
  process.on("SIGTERM", end)
  fiber.addObserver((exit) => {
    process.off("SIGINT", end)
    process.off("SIGTERM", end)
    teardown(exit, (code) => {
      if (interruptedAt !== undefined || code !== 0) process.exit(code)
    })
  })
})

/**
 * Runs the command with the arguments of the process. The exit code is 0 if it did what it was asked, 1
 * if it failed or was refused, 2 if the command line or a setting is wrong, 3 if what it is about does
 * not exist, and 4 if the server or the database cannot be used for the moment.
 *
 * @example
 * ```ts
 * import { main } from "@tenure/cli"
 *
 * main()
 * ```
 */
export const main = (): void => {
  endWithOutput()
  runMain(Effect.provide(run(process.argv.slice(2)), services))
}
