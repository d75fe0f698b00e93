/** Runs the command in this process. */

import * as NodeChildProcessSpawner from "@effect/platform-node-shared/NodeChildProcessSpawner"
import * as NodeFileSystem from "@effect/platform-node-shared/NodeFileSystem"
import * as NodePath from "@effect/platform-node-shared/NodePath"
import * as NodeStdio from "@effect/platform-node-shared/NodeStdio"
import * as NodeTerminal from "@effect/platform-node-shared/NodeTerminal"
import * as Cause from "effect/Cause"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Runtime from "effect/Runtime"
import * as Terminal from "effect/Terminal"
import { runProgram } from "../src/index.ts"

const services = NodeChildProcessSpawner.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, NodeStdio.layer, NodeTerminal.layer),
  ),
)

/** What a command printed, and how it ended. */
export interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** A command that runs. */
export interface Running {
  readonly printed: { readonly stdout: string; readonly stderr: string }
  /** Interrupts it, as Ctrl+C does, and waits for its end. */
  readonly interrupt: () => Promise<Ended>
  readonly ended: Promise<Ended>
}

/**
 * Starts the command with an environment of its own.
 *
 * @param columns - how wide the terminal is; without it, there is none
 */
export const startWith =
  (environment: Readonly<Record<string, string>>, columns = 0) =>
  (...args: ReadonlyArray<string>): Running => {
    const printed = { stdout: "", stderr: "" }
    const to =
      (name: keyof typeof printed) =>
      (...texts: ReadonlyArray<unknown>) => {
        printed[name] += `${texts.join(" ")}\n`
      }
    const captured: Console.Console = { ...console, log: to("stdout"), error: to("stderr") }
    const interruption = new AbortController()
    const end = async (): Promise<Ended> => {
      const exit = await runProgram(args).pipe(
        Effect.provideService(Console.Console, captured),
        Effect.updateService(Terminal.Terminal, (terminal) => ({
          ...terminal,
          columns: Effect.succeed(columns),
        })),
        Effect.provide(services),
        Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: environment }))),
        (effect) => Effect.runPromiseExit(effect, { signal: interruption.signal }),
      )
      const code = Exit.isSuccess(exit) ? 0 : Runtime.getErrorExitCode(Cause.squash(exit.cause))
      return { code, ...printed }
    }
    const ended = end()
    return {
      printed,
      ended,
      interrupt: () => {
        interruption.abort()
        return ended
      },
    }
  }

/** Runs the command with an environment of its own, to its end. */
export const tenureWith =
  (...given: Parameters<typeof startWith>) =>
  (...args: ReadonlyArray<string>): Promise<Ended> =>
    startWith(...given)(...args).ended
