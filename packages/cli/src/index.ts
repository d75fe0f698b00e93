/**
 * The command `tenure`. Errors in a command line go to standard error; help is printed only on request.
 */

import { readFileSync } from "node:fs"
import { constants } from "node:os"
import { performance } from "node:perf_hooks"
import * as NodeChildProcessSpawner from "@effect/platform-node-shared/NodeChildProcessSpawner"
import * as NodeFileSystem from "@effect/platform-node-shared/NodeFileSystem"
import * as NodePath from "@effect/platform-node-shared/NodePath"
import * as NodeStdio from "@effect/platform-node-shared/NodeStdio"
import * as NodeTerminal from "@effect/platform-node-shared/NodeTerminal"
import { commandVariables, describeMisspelled } from "@tenure/core/internal"
import * as CliConfig from "effect/cli/CliConfig"
import * as CliError from "effect/cli/CliError"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Runtime from "effect/Runtime"
import { extendAllCommand } from "./commands/bulk-extensions.ts"
import { cellsCommand } from "./commands/cells.ts"
import { exportCommand, importCommand, migrateCommand } from "./commands/database.ts"
import { devCommand } from "./commands/dev.ts"
import { doctorCommand } from "./commands/doctor.ts"
import { initCommand } from "./commands/init.ts"
import { keysCommand } from "./commands/keys.ts"
import { listenCommand } from "./commands/listen.ts"
import { mcpCommand } from "./commands/mcp.ts"
import { membersCommand } from "./commands/members.ts"
import { profilesCommand } from "./commands/profiles.ts"
import { auditCommand, projectsCommand, statusCommand } from "./commands/projects.ts"
import { signCommand, verifyCommand } from "./commands/signing.ts"
import { triggerCommand } from "./commands/trigger.ts"
import { webhooksCommand } from "./commands/webhooks.ts"
import { readArguments } from "./support/arguments.ts"
import { Failure, describeFailure, exitCodes } from "./support/failure.ts"
import { yesFlag } from "./support/input.ts"
import { printable, toJson } from "./support/text.ts"

const refuse = (errors: ReadonlyArray<CliError.CliError>, help: string) =>
  Effect.gen(function* () {
    const { formatErrors } = yield* CliOutput.Formatter
    yield* Console.error(formatErrors(errors).trim())
    yield* Console.error(`\n${help}`)
  })

const refuseAsJson = (errors: ReadonlyArray<CliError.CliError>, help: string) => {
  const message = [...errors.map((error) => error.message), help].join(". ")
  return Console.error(toJson({ error: { message } }))
}

/** Omits errors caused by another one: an unknown command has unknown flags. */
const causesOf = (errors: ReadonlyArray<CliError.CliError>): ReadonlyArray<CliError.CliError> => {
  const unknown = errors.filter(({ _tag }) => _tag === "UnknownSubcommand")
  return unknown.length > 0 ? unknown : errors
}

/** Prints help, versions, and command-line errors: the errors as JSON for programs. */
const usagePresenter = (isJson: boolean): CliOutput.Presenter => ({
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? (isJson ? refuseAsJson : refuse)(
          causesOf(event.errors),
          `See ${event.commandPath.join(" ")} --help`,
        )
      : CliOutput.defaultPresenter.present(event),
})

/** Sets the exit code for a command-line error. */
const withExitCode = <E>(error: E): E => {
  if (CliError.isCliError(error) && error._tag === "ShowHelp" && error.errors.length > 0)
    Object.assign(error, { [Runtime.errorExitCode]: exitCodes.usage })
  return error
}

/** The command. */
export const tenure = Command.make("tenure").pipe(
  Command.withDescription("Membership end dates in your backend."),
  Command.withExamples([
    { command: "tenure dev", description: "Try it here; nothing else has to run" },
    {
      command: "tenure members extend 1001 2027-12-31 --project shop",
      description: "With TENURE_URL and TENURE_TOKEN of a server, or TENURE_DATABASE_URL",
    },
    { command: "tenure doctor", description: "What is wrong, and what to do" },
  ]),
  Command.withSubcommands([
    initCommand,
    devCommand,
    listenCommand,
    projectsCommand,
    membersCommand,
    extendAllCommand,
    keysCommand,
    webhooksCommand,
    auditCommand,
    triggerCommand,
    statusCommand,
    doctorCommand,
    mcpCommand,
    signCommand,
    verifyCommand,
    migrateCommand,
    cellsCommand,
    exportCommand,
    importCommand,
    profilesCommand,
  ]),
  Command.withGlobalFlags([yesFlag]),
)

// Without a subcommand, they would look for a server before they show their help.
const groups = [projectsCommand, membersCommand, keysCommand, webhooksCommand].map(
  ({ name }) => name,
)

const jsonOf = ({ code, message, requestId }: Failure): string =>
  toJson({ error: { code, message, request_id: requestId } })

/** Prints a failure to standard error: as JSON for programs. */
const report = (error: unknown, isJson: boolean): Effect.Effect<void> => {
  if (!(error instanceof Failure)) return Effect.void
  return Console.error(isJson ? jsonOf(error) : printable(describeFailure(error)))
}

/** Prints warnings of `TENURE_` variables that no command reads. */
const warnOfMisspelled = (names: ReadonlyArray<string>, isJson: boolean): Effect.Effect<void> =>
  Effect.forEach(
    describeMisspelled(names, commandVariables, ["TENURE_"]),
    (message) => Console.error(isJson ? toJson({ warning: { message } }) : printable(message)),
    { discard: true },
  )

const manifest: { readonly version: string } = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8"),
)

const settings = (isJson: boolean) =>
  Layer.merge(
    CliOutput.layerPresenter(usagePresenter(isJson)),
    CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] }),
  )

/**
 * Runs the command with a list of arguments. After reporting a failure, fails with an error carrying
 * the exit code.
 */
export const runProgram = (args: ReadonlyArray<string>) => {
  // The command line itself may be invalid, so this looks at the raw arguments.
  const isJson = args.includes("--json")
  return Command.runWith(
    tenure,
    manifest,
  )(readArguments(args, groups)).pipe(
    Effect.tapError((error) => report(error, isJson)),
    Effect.mapError(withExitCode),
    Effect.provide(settings(isJson)),
  )
}

const services = NodeChildProcessSpawner.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, NodeStdio.layer, NodeTerminal.layer),
  ),
)

/**
 * Ends the process when it can no longer print: silently if the reader has closed the pipe, as `head`
 * does, otherwise with an error, for example on a full disk.
 */
const endWithOutput = (): void => {
  process.stderr.on("error", () => process.exit(exitCodes.failed))
  process.stdout.on("error", (error) => {
    if ("code" in error && error.code === "EPIPE") process.exit(0)
    process.stderr.write(`${error.message}\n`)
    process.exit(exitCodes.failed)
  })
}

// npm forwards Ctrl+C although the process has already received it. That is not a second Ctrl+C.
const sameSignalMillis = 500

// A closed terminal sends SIGHUP.
const endSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const

/** Runs an effect. The first signal interrupts it, and a second one ends the process at once. */
const runMain = Runtime.makeRunMain(({ fiber, teardown }) => {
  let interruptedAt: number | undefined
  const end = (name: (typeof endSignals)[number]): void => {
    if (interruptedAt === undefined) {
      interruptedAt = performance.now()
      fiber.interruptUnsafe(fiber.id)
    } else if (performance.now() - interruptedAt > sameSignalMillis) {
      process.exit(128 + constants.signals[name])
    }
  }
  for (const name of endSignals) process.on(name, end)
  fiber.addObserver((exit) => {
    for (const name of endSignals) process.off(name, end)
    teardown(exit, (code) => {
      if (interruptedAt !== undefined || code !== 0) process.exit(code)
    })
  })
})

/**
 * Runs the command with the process's arguments. Exit codes: 0 for success, 1 for failed or refused, 2
 * for an invalid command line or setting, 3 for not found, 4 for a server or database that is
 * unavailable for now.
 * @example
 * ```ts
 * import { main } from "@tenure/cli"
 *
 * main()
 * ```
 */
export const main = (): void => {
  endWithOutput()
  const args = process.argv.slice(2)
  const warned = warnOfMisspelled(Object.keys(process.env), args.includes("--json"))
  runMain(Effect.andThen(warned, Effect.provide(runProgram(args), services)))
}
