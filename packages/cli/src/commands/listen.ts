/** `tenure listen`: prints events as they happen. */

import type { FeedEvent } from "@tenure/client"
import { WebhookSecret, secretFromBytes, signMessage } from "@tenure/core/signature"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import { Api, callApi } from "../support/api.ts"
import {
  type Failure,
  callFailure,
  networkReason,
  operationFailed,
  usageFailure,
} from "../support/failure.ts"
import { projectFlag } from "../support/flags.ts"
import { readSecret, secretFile } from "../support/input.ts"
import { connected, printResult } from "../support/output.ts"
import { printable } from "../support/text.ts"

/** Prints an event on one line: time, type and data. */
export const lineOfEvent = ({
  data,
  timestamp,
  type,
}: {
  readonly data: unknown
  readonly timestamp: string
  readonly type: string
}): string => printable(`${timestamp}  ${type}  ${JSON.stringify(data)}`)

/** The URL to forward events to, and the secret to sign them with. */
export interface Target {
  readonly url: string
  readonly secret: WebhookSecret
}

const requestOf = (
  { data, id, timestamp, type }: FeedEvent,
  secret: WebhookSecret,
  now: number,
) => {
  const message = {
    id,
    timestamp: Math.floor(now / 1000),
    body: JSON.stringify({ type, timestamp, data }),
  }
  return {
    body: message.body,
    headers: {
      "content-type": "application/json",
      "user-agent": "Tenure",
      "webhook-id": message.id,
      "webhook-timestamp": String(message.timestamp),
      "webhook-signature": signMessage(message, secret),
    },
  }
}

// As long as a webhook may take.
const timeout = 15_000

// While a program starts again: seven seconds in all.
const again = { schedule: Schedule.exponential("500 millis"), times: 4 }

/** Sends an event and returns the response's status. Fails if several attempts get no response. */
const forward = (event: FeedEvent, { secret, url }: Target): Effect.Effect<number, Failure> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.tryPromise({
      try: async (signal) => {
        const { body, status } = await fetch(url, {
          method: "POST",
          redirect: "manual",
          signal: AbortSignal.any([signal, AbortSignal.timeout(timeout)]),
          ...requestOf(event, secret, now),
        })
        await body?.cancel()
        return status
      },
      catch: (fault) => operationFailed(networkReason(fault)),
    }),
  ).pipe(Effect.retry(again))

/** A project's feed. */
interface Feed {
  readonly project_id: string
  /** All if missing. */
  readonly types: ReadonlyArray<string> | undefined
}

/** Returns the given cursor, or the current one. */
const startFollowing = (project_id: string, given: Option.Option<string>) =>
  Option.match(given, {
    onNone: () =>
      Effect.map(
        callApi(({ events }, options) => events.list({ project_id }, options)),
        ({ next }) => next,
      ),
    onSome: Effect.succeed,
  })

/**
 * Follows the events after a cursor, across broken connections and server restarts. Never returns.
 *
 * @param onEvent - runs for each event, one after the other
 * @param onCursor - receives the cursor after all processed events
 */
const followEvents = Effect.fnUntraced(function* <R>(
  feed: Feed,
  after: string,
  onEvent: (event: FeedEvent) => Effect.Effect<void, never, R>,
  onCursor: (cursor: string) => void,
) {
  const { client } = yield* Api
  const context = yield* Effect.context<R>()
  const run = Effect.runPromiseWith(context)
  yield* Effect.tryPromise({
    try: (signal) =>
      client.events.subscribe({
        ...feed,
        after,
        signal,
        onEvent: (event) => run(onEvent(event), { signal }),
        onCursor,
      }),
    catch: callFailure,
  })
})

const forwardTo = Flag.String("forward-to").pipe(
  Flag.withMetavar("URL"),
  Flag.withDescription("Sends each event there, signed as a webhook is"),
  Flag.optional,
)

const typesFlag = Flag.String("type").pipe(
  Flag.withMetavar("TYPE"),
  Flag.withDescription("Only events of this type; can be repeated"),
  Flag.atLeast(0),
)

const commandAfter = Flag.String("after").pipe(
  Flag.withMetavar("CURSOR"),
  Flag.withDescription("Goes on after a cursor; start for the oldest event that is kept"),
  Flag.optional,
)

const isUrl = (text: string): boolean =>
  URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)

/** Returns the given secret, or a new one, printed only once. */
const secretFor = Effect.fnUntraced(function* (file: Option.Option<string>) {
  const given = yield* readSecret(file)
  if (Option.isSome(given)) {
    return WebhookSecret.is(given.value)
      ? given.value
      : yield* usageFailure(`The secret must be ${WebhookSecret.expected}.`)
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
  if (!isUrl(url.value)) return yield* usageFailure("--forward-to must be an http or https URL.")
  return { url: url.value, secret: yield* secretFor(file) } satisfies Target
})

const report = (event: FeedEvent, outcome: string) =>
  Console.error(printable(`  ${event.type} ${event.id} → ${outcome}`))

/** Prints and forwards an event. If forwarding fails, continues with the next event. */
const take = Effect.fnUntraced(function* (event: FeedEvent, target: Target | undefined) {
  yield* printResult(event, () => [lineOfEvent(event)])
  if (target === undefined) return
  yield* Effect.matchEffect(forward(event, target), {
    onSuccess: (status) => report(event, String(status)),
    onFailure: ({ message }) => report(event, `not sent: ${message}`),
  })
})

/** The command. */
export const listenCommand = Command.make(
  "listen",
  {
    project: projectFlag,
    forwardTo,
    types: typesFlag,
    after: commandAfter,
    secretFile: secretFile("a new one, which is printed"),
  },
  Effect.fnUntraced(function* (given) {
    const target = yield* targetOf(given.forwardTo, given.secretFile)
    let cursor = yield* startFollowing(given.project, given.after)
    yield* Console.error(`Listening to ${given.project}. Ctrl+C ends it.`)
    const types = given.types.length === 0 ? undefined : given.types
    yield* followEvents(
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
    { command: "tenure listen --project shop --type membership.extended --type membership.ended" },
    { command: "tenure listen --project shop --forward-to http://127.0.0.1:4000/hook" },
  ]),
  connected,
)
