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

/** The state of a delivery. */
export const state = Schema.Literals(deliveryStates).annotate({
  description: "Whether it waits for an attempt, or how it has ended.",
  examples: ["delivered"],
})

/** What every delivery has. */
export const fields = {
  state,
  due_at: Schema.NullOr(Fields.instant).annotate({
    description: "When the next attempt is due; null if the delivery has ended.",
    examples: [null],
  }),
  attempts: Schema.Array(attempt),
}
