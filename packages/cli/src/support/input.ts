/** Input of commands: texts from files or standard input, and confirmations at a terminal. */

import * as Flag from "effect/cli/Flag"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Prompt from "effect/cli/Prompt"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import * as Redacted from "effect/Redacted"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { operationFailed, usageFailure } from "./failure.ts"
import { booleanFlag } from "./flags.ts"
import { printable } from "./text.ts"

/** Whether somebody can be asked. */
const isInteractive = (): boolean => process.stdin.isTTY === true && process.stdout.isTTY === true

const problemOf = ({ reason }: PlatformError): string => {
  switch (reason._tag) {
    case "NotFound":
      return "no such file or folder"
    case "PermissionDenied":
      return "permission denied, for it or for its folder"
    case "BadResource":
      return "it is a folder, or its path leads through a file"
    default:
      return reason.cause instanceof Error ? reason.cause.message : reason.message
  }
}

/**
 * Explains why a file cannot be used.
 * @param path - the file's path, or `-` for standard input
 */
export const fileProblem = (path: string, error: PlatformError): string =>
  `${path === "-" ? "Standard input" : `The file ${path}`} cannot be used: ${problemOf(error)}.`

/** Asks for a secret without echoing it. Fails with the message without a terminal. */
export const askSecret = (name: string, otherwise: string) =>
  isInteractive()
    ? Effect.map(Prompt.run(Prompt.Password({ message: name })), Redacted.value)
    : Effect.fail(usageFailure(otherwise))

/**
 * Creates a flag for a file with a webhook's secret. Secrets come from a file, the environment or the
 * keyboard, never from an argument.
 * @param otherwise - describes the default
 */
export const secretFile = (otherwise: string) =>
  Flag.String("secret-file").pipe(
    Flag.withMetavar("FILE"),
    Flag.withDescription(
      `A file with the secret; without it, TENURE_WEBHOOK_SECRET, or ${otherwise}`,
    ),
    Flag.optional,
  )

/** Reads a text file, without surrounding space. */
export const readTextFile = Effect.fnUntraced(
  function* (path: string) {
    return (yield* (yield* FileSystem.FileSystem).readFileString(path)).trim()
  },
  (reading, path) =>
    Effect.catchTag(reading, "PlatformError", (error) =>
      Effect.fail(operationFailed(fileProblem(path, error))),
    ),
)

const variable = Config.option(Config.NonEmptyString("TENURE_WEBHOOK_SECRET"))

/** Reads a webhook's secret from the file or the environment, if present. */
export const readSecret = (path: Option.Option<string>) =>
  Option.isSome(path) ? Effect.map(readTextFile(path.value), Option.some) : Effect.orDie(variable)

/** Returns a webhook's secret. */
export const webhookSecret = Effect.fnUntraced(function* (path: Option.Option<string>) {
  const found = yield* readSecret(path)
  return Option.isSome(found)
    ? found.value
    : yield* askSecret(
        "Secret of the webhook",
        "TENURE_WEBHOOK_SECRET must be the secret of a webhook.",
      )
})

/** Answers "yes" in advance to questions before irreversible changes. Every command takes it. */
export const yesFlag = GlobalFlag.Setting("yes")({
  flag: booleanFlag(
    "yes",
    "Answers yes to questions; without a terminal, commands that ask need it",
  ).pipe(Flag.withAlias("y")),
})

/**
 * Asks whether to go on. Fails if the answer is no, or if nobody can be asked.
 *
 * @param isSafe - skips the question
 */
export const requireConfirmation = Effect.fnUntraced(function* (question: string, isSafe = false) {
  if (isSafe || (yield* yesFlag)) return
  if (!isInteractive()) return yield* usageFailure(`${question} Confirm it by --yes.`)
  if (!(yield* Prompt.run(Prompt.Confirm({ message: printable(question) }))))
    return yield* operationFailed("Nothing was changed.")
})

/** Reads a file's bytes, or standard input for `-`. */
const bytesOf = (path: string) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { stdin } = yield* Stdio.Stdio
      const { stream } = yield* FileSystem.FileSystem
      return path === "-" ? stdin : stream(path)
    }),
  ).pipe(Stream.mapError((error) => operationFailed(fileProblem(path, error))))

/** Reads a file's whole text, or standard input for `-`. */
export const readAll = (path: string) => Stream.mkString(Stream.decodeText(bytesOf(path)))

// Reviver functions receive a number's source text only as this argument.
interface Written {
  readonly source?: string
}

/**
 * Parses JSON as `JSON.parse` does, but returns digits that are no safe integer as text: an id such as
 * 175928847299117063 would be rounded. Throws a `SyntaxError` for other text.
 */
export const parseExact = (text: string): unknown =>
  JSON.parse(text, (_: string, value: unknown, { source = "" }: Written = {}) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^\d+$/.test(source)
      ? source
      : value,
  )

/** Parses JSON. Throws a `RangeError` for a number too large to be exact. */
export const parseUnrounded = (text: string): unknown =>
  JSON.parse(text, (_: string, value: unknown) => {
    if (typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER)
      throw new RangeError(`${value} would be rounded`)
    return value
  })
