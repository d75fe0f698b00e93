/** The schemas of deliveries and their attempts. */

import * as Schema from "effect/Schema"
import { deliveryStates } from "../../webhooks/Outbox.ts"
import * as Fields from "./Fields.ts"

const attempt = Schema.Struct({
  at: Fields.instant,
  duration_ms: Schema.Int.annotate({ examples: [84] }),
  status: Schema.NullOr(Schema.Int).annotate({
    description: "The status of the receiver's response; null if there was none.",
    examples: [204],
  }),
  error: Schema.NullOr(Schema.String).annotate({
    description: "Why the attempt failed; null if it succeeded.",
    examples: [null],
  }),
}).annotate({ identifier: "Attempt" })

/** An attempt, with what the receiver has responded. */
const answeredAttempt = Schema.Struct({
  ...attempt.fields,
  response_body: Schema.NullOr(Schema.String).annotate({
    description:
      "The beginning of the receiver's response, up to a kilobyte; null if there was none.",
    examples: [""],
  }),
}).annotate({ identifier: "AnsweredAttempt" })

/** The state of a delivery. */
export const state = Schema.Literals(deliveryStates).annotate({
  description: "Whether it waits for an attempt, or how it has ended.",
  examples: ["delivered"],
})

const due_at = Schema.NullOr(Fields.instant).annotate({
  description: "When the next attempt is due; null if the delivery has ended.",
  examples: [null],
})

/** What every delivery has. */
export const fields = { state, due_at, attempts: Schema.Array(attempt) }

/** What a delivery has that is shown with what was sent, and what the receiver has responded. */
export const shownFields = {
  state,
  due_at,
  attempts: Schema.Array(answeredAttempt),
  request: Schema.Struct({
    method: Schema.Literal("POST"),
    url: Schema.String.annotate({ examples: ["https://receiver.example/hooks"] }),
    headers: Schema.Record(Schema.String, Schema.NullOr(Schema.String)).annotate({
      description: "The header fields; null for those that each attempt makes anew.",
      examples: [
        {
          "content-type": "application/json",
          "user-agent": "Tenure",
          "webhook-id": Fields.exampleId,
          "webhook-timestamp": null,
          "webhook-signature": null,
        },
      ],
    }),
    body: Schema.String.annotate({
      description: "The body, as it is sent.",
      examples: [
        '{"type":"payment.completed","timestamp":"2099-01-01T00:00:00.000Z","data":{"invoice":"2099-117"}}',
      ],
    }),
  }).annotate({ description: "What every attempt sends." }),
}
