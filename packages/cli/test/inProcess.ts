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
import { run } from "../src/program.ts"

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

/** Runs the command with an environment of its own. */
export const tenureWith =
  (environment: Readonly<Record<string, string>>) =>
  async (...args: ReadonlyArray<string>): Promise<Ended> => {
    const printed = { stdout: "", stderr: "" }
    const to =
      (name: keyof typeof printed) =>
      (...texts: ReadonlyArray<unknown>) => {
        printed[name] += `${texts.join(" ")}\n`
      }
    const captured: Console.Console = {
      ...console,
      log: to("stdout"),
      error: to("stderr"),
    }
    const exit = await run(args).pipe(
      Effect.provideService(Console.Console, captured),
      Effect.provide(services),
      Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: environment }))),
      Effect.runPromiseExit,
    )
    const code = Exit.isSuccess(exit) ? 0 : Runtime.getErrorExitCode(Cause.squash(exit.cause))
    return { code, ...printed }
  }
