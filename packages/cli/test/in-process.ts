/** Runs the command in this process. */

import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
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
import { expect, onTestFinished } from "vitest"
import { runProgram } from "../src/index.ts"

const services = NodeChildProcessSpawner.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, NodeStdio.layer, NodeTerminal.layer),
  ),
)

export type Environment = Readonly<Record<string, string>>

/** What a command printed, and how it ended. */
export interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Starts the command with arguments. Without columns, there is no terminal. */
const startWith = (env: Environment, columns: number, args: ReadonlyArray<string>) => {
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
      Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env }))),
      (effect) => Effect.runPromiseExit(effect, { signal: interruption.signal }),
    )
    const code = Exit.isSuccess(exit) ? 0 : Runtime.getErrorExitCode(Cause.squash(exit.cause))
    return { code, ...printed }
  }
  const ended = end()
  /** Interrupts it, as Ctrl+C does, and waits for its end. */
  const interrupt = () => {
    interruption.abort()
    return ended
  }
  return { printed, ended, interrupt }
}

/** A command line's words. */
export const wordsOf = (line: string): ReadonlyArray<string> =>
  [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, bare]) => single ?? double ?? bare ?? "",
  )

/** A command line. A value is a word or a part, and an array has some words. */
type Line = readonly [
  texts: TemplateStringsArray,
  ...values: ReadonlyArray<string | ReadonlyArray<string>>,
]

const argumentsOf = ([texts, ...values]: Line): ReadonlyArray<string> => {
  const line = String.raw({ raw: texts }, ...values.map((_, index) => `\0${index}\0`))
  return wordsOf(line).flatMap((word) => {
    const value = values[Number(/^\0(\d+)\0$/.exec(word)?.[1])]
    if (typeof value === "object") return value
    return word.replaceAll(/\0(\d+)\0/g, (_, index) => String(values[Number(index)]))
  })
}

/** The lines in a text, each as JSON. */
export const jsonLines = (text: string) =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))

/** How a command line ends that is refused: with an exit code, and a text among what it says. */
export const refused = (code: number, text = "") => ({
  code,
  stderr: expect.stringContaining(text),
})

/** Returns functions that run command lines in an environment. */
export const tenureWith = (environment: Environment | (() => Environment), columns = 0) => {
  const begin = (args: ReadonlyArray<string>) =>
    startWith(typeof environment === "function" ? environment() : environment, columns, args)
  /** Expects success, and returns what it prints. */
  const succeed = async (args: ReadonlyArray<string>): Promise<string> => {
    const { code, stderr, stdout } = await begin(args).ended
    expect({ code, stderr }, args.join(" ")).toEqual({ code: 0, stderr: "" })
    return stdout
  }
  return {
    /** Starts it until the test ends. */
    start: (...line: Line) => {
      const running = begin(argumentsOf(line))
      onTestFinished(() => void running.interrupt())
      return running
    },
    run: (...line: Line) => begin(argumentsOf(line)).ended,
    print: (...line: Line) => succeed(argumentsOf(line)),
    json: async (...line: Line) => JSON.parse(await succeed([...argumentsOf(line), "--json"])),
    lines: async (...line: Line) => jsonLines(await succeed([...argumentsOf(line), "--json"])),
  }
}

export type Tenure = ReturnType<typeof tenureWith>

/** Makes a folder, which is removed after all tests. */
export const temporaryFolder = (): string => mkdtempSync(join(tmpdir(), "tenure-cli-"))
