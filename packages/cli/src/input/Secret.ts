/** Secrets, which come from the environment, from a file or from the keyboard, never from an argument. */

import * as Flag from "effect/cli/Flag"
import * as Prompt from "effect/cli/Prompt"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { failed, usage } from "../Failure.ts"
import { fileProblem } from "./fileProblem.ts"
import { isInteractive } from "./terminal.ts"

/** Asks for a secret, which is not shown. Fails with the message if nobody can be asked. */
export const ask = (name: string, otherwise: string) =>
  isInteractive()
    ? Effect.map(Prompt.run(Prompt.Password({ message: name })), Redacted.value)
    : Effect.fail(usage(otherwise))

/** Makes the flag for a file that has the secret of a webhook. @param otherwise - what takes its place */
export const file = (otherwise: string) =>
  Flag.String("secret-file").pipe(
    Flag.withMetavar("FILE"),
    Flag.withDescription(
      `A file with the secret; without it, TENURE_WEBHOOK_SECRET, or ${otherwise}`,
    ),
    Flag.optional,
  )

const fromFile = Effect.fnUntraced(
  function* (path: string) {
    return (yield* (yield* FileSystem.FileSystem).readFileString(path)).trim()
  },
  (reading, path) =>
    Effect.catchTag(reading, "PlatformError", (error) =>
      Effect.fail(failed(fileProblem(path, error))),
    ),
)

const variable = Config.option(Config.NonEmptyString("TENURE_WEBHOOK_SECRET"))

/** The secret of a webhook in a file or in the environment, if there is one. */
export const given = (path: Option.Option<string>) =>
  Option.isSome(path) ? Effect.map(fromFile(path.value), Option.some) : Effect.orDie(variable)

/** The secret of a webhook. */
export const ofWebhook = Effect.fnUntraced(function* (path: Option.Option<string>) {
  const found = yield* given(path)
  return Option.isSome(found)
    ? found.value
    : yield* ask("Secret of the webhook", "TENURE_WEBHOOK_SECRET must be the secret of a webhook.")
})
