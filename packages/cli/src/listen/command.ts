/** `tenure listen`: events as they happen. */

import type { FeedEvent } from "@tenure/client"
import { Secret as WebhookSecret, secretFromBytes } from "@tenure/core/WebhookSignature"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { connected } from "../connection/connected.ts"
import { usage } from "../Failure.ts"
import { project } from "../input/flags.ts"
import * as Secret from "../input/Secret.ts"
import * as Output from "../output/Output.ts"
import { printable } from "../output/printable.ts"
import { lineOfEvent } from "./eventLine.ts"
import { begin, follow } from "./follow.ts"
import { forward, type Target } from "./forward.ts"

const forwardTo = Flag.String("forward-to").pipe(
  Flag.withMetavar("URL"),
  Flag.withDescription("Sends each event there, signed as a webhook is"),
  Flag.optional,
)

const typesFlag = Flag.String("types").pipe(
  Flag.withMetavar("TYPES"),
  Flag.withDescription("Only events of these types, joined by commas"),
  Flag.optional,
)

const after = Flag.String("after").pipe(
  Flag.withMetavar("CURSOR"),
  Flag.withDescription("Goes on after a cursor; start for the oldest event that is kept"),
  Flag.optional,
)

const isUrl = (text: string): boolean =>
  URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)

/** The secret that is given, or a new one, which is shown this once. */
const secretFor = Effect.fnUntraced(function* (file: Option.Option<string>) {
  const given = yield* Secret.given(file)
  if (Option.isSome(given)) {
    return WebhookSecret.is(given.value)
      ? given.value
      : yield* usage(`The secret must be ${WebhookSecret.expected}.`)
  }
  const made = secretFromBytes(crypto.getRandomValues(new Uint8Array(32)))
  yield* Console.error(`The secret for the receiver: ${made}`)
  return made
})

const targetOf = Effect.fnUntraced(function* (
  url: Option.Option<string>,
  file: Option.Option<string>,
) {
  if (Option.isNone(url)) return undefined
  if (!isUrl(url.value)) return yield* usage("--forward-to must be an http or https URL.")
  return { url: url.value, secret: yield* secretFor(file) } satisfies Target
})

const report = (event: FeedEvent, outcome: string) =>
  Console.error(printable(`  ${event.type} ${event.id} → ${outcome}`))

/** Shows an event, and forwards it. If that fails, it goes on with the next one. */
const take = Effect.fnUntraced(function* (event: FeedEvent, target: Target | undefined) {
  yield* Output.print(event, () => [lineOfEvent(event)])
  if (target === undefined) return
  yield* Effect.matchEffect(forward(event, target), {
    onSuccess: (status) => report(event, String(status)),
    onFailure: ({ message }) => report(event, `not sent: ${message}`),
  })
})

/** The command. */
export const listen = Command.make(
  "listen",
  {
    project,
    forwardTo,
    types: typesFlag,
    after,
    secretFile: Secret.file("a new one, which is printed"),
  },
  Effect.fnUntraced(function* (given) {
    const target = yield* targetOf(given.forwardTo, given.secretFile)
    let cursor = yield* begin(given.project, given.after)
    yield* Console.error(`Listening to ${given.project}. Ctrl+C ends it.`)
    const types = Option.getOrUndefined(given.types)?.split(",")
    yield* follow(
      { project_id: given.project, types },
      cursor,
      (event) => take(event, target),
      (next) => {
        cursor = next
      },
    ).pipe(Effect.onExit(() => Console.error(`To go on from here: --after ${cursor}`)))
  }),
).pipe(
  Command.withDescription("Shows events as they happen, and forwards them to a program"),
  Command.withExamples([
    { command: "tenure listen --project shop --types membership.extended,membership.ended" },
    { command: "tenure listen --project shop --forward-to http://127.0.0.1:4000/hook" },
  ]),
  connected,
)
