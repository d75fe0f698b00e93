/** Questions before what cannot be undone. */

import * as Flag from "effect/cli/Flag"
import * as Prompt from "effect/cli/Prompt"
import * as Effect from "effect/Effect"
import { failed, usage } from "../Failure.ts"
import { printable } from "../output/printable.ts"
import { isInteractive } from "./terminal.ts"
import { toggle } from "./toggle.ts"

/** The flag that answers yes. */
export const yes = toggle("yes", "Answers yes to the question; needed without a terminal").pipe(
  Flag.withAlias("y"),
)

/** Asks whether to go on. Fails if the answer is no, or if nobody can be asked. */
export const confirm = Effect.fnUntraced(function* (question: string, isYes: boolean) {
  if (isYes) return
  if (!isInteractive()) return yield* usage(`${question} Confirm it by --yes.`)
  if (!(yield* Prompt.run(Prompt.Confirm({ message: printable(question) }))))
    return yield* failed("Nothing was changed.")
})
