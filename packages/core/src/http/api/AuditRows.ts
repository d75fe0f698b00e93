/** The schemas of rows of the audit trail. */

import * as Schema from "effect/Schema"
import {
  type Action,
  globalActions,
  membershipActions,
  projectActions,
} from "../../memberships/Membership.ts"
import * as Fields from "./Fields.ts"

/** Who made a change, when and why, from and to which date. */
export const fieldsOf = <const Of extends ReadonlyArray<Action>>(actions: Of) => ({
  at: Fields.instant,
  action: Schema.Literals(actions).annotate({
    description:
      "What was done; `bulk_lengthened` has left memberships that ended later, and `expiring` and `expired` are announcements of the date.",
  }),
  from: Schema.NullOr(Fields.instant),
  to: Schema.NullOr(Fields.instant),
  key_id: Schema.NullOr(Schema.String).annotate({
    description: "The id of the API key, or of whom else the host named.",
  }),
  key_name: Schema.NullOr(Schema.String).annotate({ description: "The name of the API key." }),
  request_id: Schema.NullOr(Schema.String),
  reason: Schema.NullOr(Schema.String),
})

/** A row, with what was changed. */
export const row = Schema.Struct({
  ...fieldsOf([...membershipActions, ...projectActions, ...globalActions]),
  user_id: Schema.NullOr(Fields.userId).annotate({
    description:
      "Whose membership was changed; null if all were, or something else, or if the user was erased.",
  }),
  subject: Schema.NullOr(Schema.String).annotate({
    description:
      "The id of the webhook, the API key or the project that was changed; null for memberships.",
    examples: [null],
  }),
}).annotate({ identifier: "AuditRow" })
