/** The schemas of path parameters, and of values that several resources have. */

import * as Schema from "effect/Schema"
import * as Instant from "../../base/Instant.ts"
import * as Event from "../../events/Event.ts"
import * as EndDate from "../../memberships/EndDate.ts"
import { userIdPattern } from "../../memberships/Membership.ts"
import { reasonPattern } from "../../memberships/Reason.ts"

/** The id that examples have in the place of one that Tenure assigns. */
export const exampleId = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"

/** The instant that examples have: far enough in the future to be sent as it is. */
const exampleInstant = "2099-01-01T00:00:00.000Z"

export const projectId = Schema.String.annotate({
  description: "The id of the project.",
  examples: ["demo"],
})

export const userId = Schema.String.check(Schema.isPattern(userIdPattern)).annotate({
  description: "The id of the user.",
  examples: ["1001"],
})

/** An id that Tenure assigns. */
export const uuid = Schema.String.check(Schema.isUUID()).annotate({
  identifier: "Uuid",
  description: "A UUID.",
  examples: [exampleId],
})

export const requestId = Schema.String.check(Schema.isUUID()).annotate({
  identifier: "RequestId",
  description: "The id of the request, a new UUID.",
  examples: [exampleId],
})

export const eventId = uuid.annotateKey({ description: "The id of the event." })

export const eventType = Schema.String.check(Schema.isPattern(Event.pattern)).annotate({
  description: "The type of an event.",
  examples: ["payment.completed"],
})

export const webhookId = uuid.annotateKey({ description: "The id of the webhook." })

/** A time in a response. */
export const instant = Schema.String.check(Schema.isPattern(Instant.pattern)).annotate({
  identifier: "Instant",
  description: "A time in UTC, with milliseconds.",
  examples: [exampleInstant],
})

/** The query parameters of a paged list. */
export const page = {
  limit: Schema.optionalKey(
    Schema.FiniteFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 1, maximum: 1000 })),
  ),
  after: Schema.optionalKey(Schema.String),
}

/** A date in a request, in either of its two formats. */
export const endDate = Schema.Union([
  Schema.Int.check(Schema.isBetween(EndDate.timestamps)),
  Schema.String.check(Schema.isPattern(Instant.pattern)),
]).annotate({ examples: [exampleInstant] })

export const reason = Schema.String.check(Schema.isPattern(reasonPattern)).annotate({
  description: "Why, in 1 to 500 characters. The audit trail and the event keep it.",
  examples: ["Compensation for the outage of 3 May"],
})
