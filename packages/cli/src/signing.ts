/** `tenure sign` and `tenure verify`, for those who write receivers. */

import { verifyWebhook, WebhookVerificationError } from "@tenure/client"
import { Secret as WebhookSecret, sign as signatureOf } from "@tenure/core/WebhookSignature"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { failed, usage } from "./Failure.ts"
import * as Secret from "./input/Secret.ts"
import { readAll } from "./input/text.ts"
import * as Output from "./output/Output.ts"

const payload = Argument.String("file").pipe(
  Argument.withDescription("The file with the body, exactly as it is sent; - for standard input"),
  Argument.withDefault("-"),
)

const id = Flag.String("id").pipe(
  Flag.withMetavar("ID"),
  Flag.withDescription("The webhook-id header"),
)

const timestamp = Flag.Int("timestamp").pipe(
  Flag.withMetavar("SECONDS"),
  Flag.withDescription("The webhook-timestamp header; now by default"),
  Flag.optional,
)

const secretFile = Secret.file("a question")

/** `tenure sign`. */
export const sign = Command.make(
  "sign",
  { file: payload, id, timestamp, secretFile },
  Effect.fnUntraced(function* (given) {
    const secret = yield* Secret.ofWebhook(given.secretFile)
    if (!WebhookSecret.is(secret))
      return yield* usage(`The secret must be ${WebhookSecret.expected}.`)
    const seconds = Option.getOrElse(given.timestamp, () => undefined)
    const message = {
      id: given.id,
      timestamp: seconds ?? Math.floor((yield* Clock.currentTimeMillis) / 1000),
      body: yield* readAll(given.file),
    }
    const headers = {
      "webhook-id": message.id,
      "webhook-timestamp": String(message.timestamp),
      "webhook-signature": signatureOf(message, secret),
    }
    yield* Output.print(headers, () =>
      Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    )
  }),
).pipe(
  Command.withDescription("Signs a body as a notification, and prints the headers"),
  Command.withExamples([{ command: "tenure sign body.json --id msg_1" }]),
  Command.withGlobalFlags([Output.Json]),
)

const seconds = Flag.Int("timestamp").pipe(
  Flag.withMetavar("SECONDS"),
  Flag.withDescription("The webhook-timestamp header"),
)

const signature = Flag.String("signature").pipe(
  Flag.withMetavar("TEXT"),
  Flag.withDescription("The webhook-signature header"),
)

const tolerance = Flag.Int("tolerance").pipe(
  Flag.withMetavar("SECONDS"),
  Flag.withDescription("How far the timestamp may be from now"),
  Flag.withDefault(300),
)

/** `tenure verify`. */
export const verify = Command.make(
  "verify",
  { file: payload, id, timestamp: seconds, signature, tolerance, secretFile },
  Effect.fnUntraced(function* (given) {
    const secret = yield* Secret.ofWebhook(given.secretFile)
    const body = yield* readAll(given.file)
    const headers = {
      "webhook-id": given.id,
      "webhook-timestamp": String(given.timestamp),
      "webhook-signature": given.signature,
    }
    const event = yield* Effect.tryPromise({
      try: () => verifyWebhook({ headers, body }, [secret], { toleranceSeconds: given.tolerance }),
      catch: (error) =>
        error instanceof WebhookVerificationError
          ? failed(`Not genuine: ${error.message}.`)
          : failed(String(error)),
    })
    yield* Output.done(event, `Genuine: ${event.type}`)
  }),
).pipe(
  Command.withDescription("Verifies a notification; fails if it is not genuine"),
  Command.withExamples([
    { command: "tenure verify body.json --id msg_1 --timestamp 1614265330 --signature v1,g0hM…" },
  ]),
  Command.withGlobalFlags([Output.Json]),
)
