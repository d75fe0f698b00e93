/** The schemas of path parameters, and of values that several resources have. */

import * as Schema from "effect/Schema"
import * as Instant from "../../base/Instant.ts"
import * as EndDate from "../../memberships/EndDate.ts"
import { userIdPattern } from "../../memberships/Membership.ts"

export const projectId = Schema.String.annotate({ description: "The project." })

export const userId = Schema.String.check(Schema.isPattern(userIdPattern)).annotate({
  description: "The user.",
})

export const webhookId = Schema.String.annotate({ description: "The webhook." })

/** A date in a request, in either of its two formats. */
export const endDate = Schema.Union([
  Schema.Int.check(Schema.isBetween(EndDate.timestamps)),
  Schema.String.check(Schema.isPattern(Instant.pattern)),
])
