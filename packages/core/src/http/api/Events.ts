/** The schemas of the events that webhooks are notified of. */

import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import * as Event from "../../events/Event.ts"
import { modeNames } from "../../memberships/Bulk.ts"
import * as Fields from "./Fields.ts"

/** A kind of event: when it is published, and what its data is. */
interface Kind {
  readonly when: string
  readonly data: Schema.Top
}

const member = { user_id: Fields.userId }

const endDate = { new_end_date: Fields.instant }

const sequence = Schema.Int.annotate({
  description:
    "The place among the changes of a membership: of two events, the one with the greater sequence is of the later change, in whatever order they come. An event without user_id has that of all memberships it concerns.",
  examples: [3_000_000_002],
})

const change = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.Struct({
    project_id: Fields.projectId,
    ...fields,
    request_id: Schema.NullOr(Schema.String).annotate({
      description:
        "The request that asked for the change; null for a change by the host that names none.",
      examples: [Fields.exampleId],
    }),
    reason: Schema.optionalKey(Schema.String).annotate({
      description: "Why, in the words of whoever asked for the change.",
      examples: ["prepaid for two years"],
    }),
    sequence,
  })

const ending = Schema.Struct({
  project_id: Fields.projectId,
  ...member,
  end_date: Fields.instant,
  sequence,
})

const ofWebhook = { project_id: Fields.projectId, webhook_id: Fields.webhookId }

/** Every kind of event that Tenure itself publishes. */
const kinds: { readonly [Name in keyof typeof Event.types]: Kind } = {
  granted: {
    when: "A membership was created, or its end date set to any date.",
    data: change({ ...member, ...endDate }),
  },
  imported: {
    when: "Memberships were created or set by an import.",
    data: change({ total: Schema.Int.annotate({ description: "The number of memberships." }) }),
  },
  extended: { when: "A membership was extended.", data: change({ ...member, ...endDate }) },
  bulkExtended: {
    when: "All memberships of the project were extended.",
    data: change({
      ...endDate,
      mode: Schema.optionalKey(Schema.Literal(modeNames.neverShorten)).annotate({
        description: "If it is there, memberships that end later were left as they are.",
      }),
    }),
  },
  ended: {
    when: "A membership was removed.",
    data: change({
      user_id: Schema.NullOr(Fields.userId).annotate({
        description: "The user; null if the person was erased.",
        examples: ["1001"],
      }),
    }),
  },
  expiring: {
    when: "A membership ends soon.",
    data: Schema.Struct({
      ...ending.fields,
      reminder: Schema.Int.annotate({
        description: "Which reminder it is: the number of seconds before the end.",
        examples: [604_800],
      }),
    }),
  },
  expired: { when: "A membership has ended at its end date.", data: ending },
  ping: { when: "The webhook is tried out.", data: Schema.Struct(ofWebhook) },
  disabled: {
    when: "Another webhook of the project was disabled.",
    data: Schema.Struct({
      ...ofWebhook,
      reason: Schema.Literals(["gone", "failing"]).annotate({
        description: "Why: it answered 410, or every attempt has failed for days.",
      }),
    }),
  },
}

/** The event of the host's own, which has any other type. */
const custom: Kind = {
  when: "The host published an event of its own.",
  data: Schema.Unknown.annotate({ examples: [{ invoice: "2099-117" }] }),
}

const traceparent = Schema.String.annotate({
  description: "The trace context (W3C) of the request behind it, if that had one.",
  examples: ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"],
})

const schemaOf = (type: Schema.Top, { data }: Kind, identifier: string) =>
  Schema.Struct({
    type,
    timestamp: Fields.instant,
    traceparent: Schema.optionalKey(traceparent),
    data,
  }).annotate({ identifier })

/** The name of the schema of an event: `membership.extended` has `MembershipExtended`. */
const nameOf = (type: string): string =>
  type.replaceAll(/(?:^|\.)(\w)/g, (_, letter: string) => letter.toUpperCase())

/** A webhook in the document. */
export interface Notification {
  readonly type: string
  readonly when: string
  /** The name of its schema. */
  readonly name: string
  readonly schema: Schema.Top
}

const notification = (type: string, kind: Kind, typeSchema: Schema.Top): Notification => {
  const name = `${nameOf(type)}Event`
  return { type, when: kind.when, name, schema: schemaOf(typeSchema, kind, name) }
}

/** The events that webhooks are notified of. */
export const notifications: ReadonlyArray<Notification> = [
  ...Struct.keys(kinds).map((name) =>
    notification(Event.types[name], kinds[name], Schema.Literal(Event.types[name])),
  ),
  notification(
    "custom",
    custom,
    Schema.String.check(Schema.isPattern(Event.pattern)).annotate({
      description: "Any type that Tenure does not publish itself.",
      examples: ["payment.completed"],
    }),
  ),
]
