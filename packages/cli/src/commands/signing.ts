/** `tenure sign` and `tenure verify`, for developing receivers. */

import { WebhookVerificationError, verifyWebhook } from "@tenure/client"
import { WebhookSecret, signMessage } from "@tenure/core/signature"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { operationFailed, usageFailure } from "../support/failure.ts"
import { readAll, secretFile, webhookSecret } from "../support/input.ts"
import { jsonFlag, printDone, printResult } from "../support/output.ts"

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

const signingSecretFile = secretFile("a question")

/** `tenure sign`. */
export const signCommand = Command.make(
  "sign",
  { file: payload, id, timestamp, secretFile: signingSecretFile },
  Effect.fnUntraced(function* (given) {
    const secret = yield* webhookSecret(given.secretFile)
    if (!WebhookSecret.is(secret))
      return yield* usageFailure(`The secret must be ${WebhookSecret.expected}.`)
    const seconds = Option.getOrElse(given.timestamp, () => undefined)
    const message = {
      id: given.id,
      timestamp: seconds ?? Math.floor((yield* Clock.currentTimeMillis) / 1000),
      body: yield* readAll(given.file),
    }
    const headers = {
      "webhook-id": message.id,
      "webhook-timestamp": String(message.timestamp),
      "webhook-signature": signMessage(message, secret),
    }
    yield* printResult(headers, () =>
      Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    )
  }),
).pipe(
  Command.withDescription("Signs a body as a notification, and prints the headers"),
  Command.withExamples([{ command: "tenure sign body.json --id msg_1" }]),
  Command.withGlobalFlags([jsonFlag]),
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
export const verifyCommand = Command.make(
  "verify",
  { file: payload, id, timestamp: seconds, signature, tolerance, secretFile: signingSecretFile },
  Effect.fnUntraced(function* (given) {
    const secret = yield* webhookSecret(given.secretFile)
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
          ? operationFailed(`Not genuine: ${error.message}.`)
          : operationFailed(String(error)),
    })
    yield* printDone(event, `Genuine: ${event.type}`)
  }),
).pipe(
  Command.withDescription("Verifies a notification; fails if it is not genuine"),
  Command.withExamples([
    { command: "tenure verify body.json --id msg_1 --timestamp 1614265330 --signature v1,g0hM…" },
  ]),
  Command.withGlobalFlags([jsonFlag]),
)
