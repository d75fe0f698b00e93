/** Event schemas for webhooks. */

import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { eventTypePattern, knownEventTypes } from "../events/event.ts"
import { bulkChangeNames } from "../memberships/end-date.ts"
import { failingPercents } from "../webhooks/webhook.ts"
import { LastAttempt } from "./groups.generated.ts"
import { exampleId, instant, metadata, projectId, userId, webhookId } from "./schemas.ts"

/** An event kind: when it is published, and its data. */
interface Kind {
  readonly when: string
  readonly data: Schema.Top
}

const member = { user_id: userId }

const endDate = { new_end_date: instant }

const sequence = Schema.Int.annotate({
  description:
    "The place among the changes of a membership: of two events, the one with the greater sequence is of the later change, in whatever order they come. An event without user_id has that of all memberships it concerns.",
  examples: [3_000_000_002],
})

const change = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.Struct({
    project_id: projectId,
    ...fields,
    request_id: Schema.NullOr(Schema.String).annotate({
      description:
        "The request that asked for the change; null for a change by the host that names none.",
      examples: [exampleId],
    }),
    reason: Schema.optionalKey(Schema.String).annotate({
      description: "Why, in the words of whoever asked for the change.",
      examples: ["prepaid for two years"],
    }),
    sequence,
  })

/** Metadata in an event about one membership. */
const noted = {
  metadata: Schema.optionalKey(Schema.NullOr(metadata)).annotateKey({
    description:
      "The metadata of the membership, if it has some; null if a person in the event was erased since then.",
  }),
}

/** The other user id in a moved membership's event. */
const otherUser = (description: string) =>
  Schema.optionalKey(Schema.NullOr(userId)).annotateKey({
    description: `${description}, if it was; null if that person was erased since then.`,
  })

const ending = Schema.Struct({
  project_id: projectId,
  ...member,
  end_date: instant,
  ...noted,
  sequence,
})

const ofWebhook = { project_id: projectId, webhook_id: webhookId }

const lastFailure = {
  last_attempt: LastAttempt.annotateKey({ description: "The attempt that failed last." }),
}

/** Every event kind published by Tenure itself. */
const kinds: { readonly [Name in keyof typeof knownEventTypes]: Kind } = {
  granted: {
    when: "A membership was created, or its end date set to any date.",
    data: change({
      ...member,
      moved_from: otherUser("The user id from which the membership was moved here"),
      ...endDate,
      ...noted,
    }),
  },
  imported: {
    when: "Memberships were created or set by an import.",
    data: change({ total: Schema.Int.annotate({ description: "The number of memberships." }) }),
  },
  extended: {
    when: "A membership was extended.",
    data: change({ ...member, ...endDate, ...noted }),
  },
  bulkExtended: {
    when: "All memberships of the project were extended.",
    data: change({
      new_end_date: Schema.optionalKey(endDate.new_end_date).annotateKey({
        description: "The new end date; not there if `mode` is `extend_by`.",
      }),
      mode: Schema.optionalKey(
        Schema.Literals([bulkChangeNames.neverShorten, bulkChangeNames.extendBy]),
      ).annotate({
        description:
          "`never_shorten`: memberships that end later were left as they are. `extend_by`: every membership ends later by `extend_by`. Not there: all memberships have the new end date.",
      }),
      extend_by: Schema.optionalKey(Schema.String).annotate({
        description: "How much later every membership ends: a duration of ISO 8601.",
        examples: ["P3D"],
      }),
    }),
  },
  extensionUndone: {
    when: "An extension of all memberships of the project was undone.",
    data: change({
      bulk_extension_id: Schema.String.annotate({
        description: "The id of the event `memberships.extended` of the extension.",
        examples: [exampleId],
      }),
    }),
  },
  ended: {
    when: "A membership was removed.",
    data: change({
      user_id: Schema.NullOr(userId).annotate({
        description: "The user; null if the person was erased.",
        examples: ["1001"],
      }),
      moved_to: otherUser("The user id to which the membership was moved"),
      ...noted,
    }),
  },
  updated: {
    when: "The metadata of a membership was changed.",
    data: change({ ...member, ...noted }),
  },
  paused: {
    when: "A membership was paused: it is not active, and its end date stands meanwhile.",
    data: change({
      ...member,
      end_date: instant,
      resumes_at: Schema.NullOr(instant).annotateKey({
        description: "When the pause ends by itself; null if somebody has to end it.",
      }),
      ...noted,
    }),
  },
  resumed: {
    when: "The pause of a membership has ended, by itself or because somebody ended it. The end date is later by the time paused.",
    data: change({
      ...member,
      end_date: instant,
      resumes_at: instant.annotateKey({ description: "When the pause ended." }),
      ...noted,
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
  overdue: {
    when: "A membership has ended at its end date, and is still active during the project's grace.",
    data: Schema.Struct({
      ...ending.fields,
      grace_until: instant.annotateKey({
        description: "When the grace is over: then the membership expires.",
      }),
    }),
  },
  expired: {
    when: "A membership has expired: it has ended at its end date, and the project's grace is over, if it has some.",
    data: ending,
  },
  ping: { when: "The webhook is tried out.", data: Schema.Struct(ofWebhook) },
  failing: {
    when: "All attempts for another webhook of the project have failed for 50, 90 or 100 % of the time after which it is disabled.",
    data: Schema.Struct({
      ...ofWebhook,
      percent: Schema.Literals(failingPercents).annotate({
        description:
          "How much of that time has passed: the greatest of these shares. At 100, the webhook is disabled, and `webhook.disabled` follows.",
        examples: [50],
      }),
      failing_since: instant.annotateKey({ description: "When the first attempt failed." }),
      disables_at: instant.annotateKey({
        description: "From then on, the next attempt that fails disables the webhook.",
      }),
      failures: Schema.Int.annotate({
        description: "How many attempts have failed since one succeeded.",
        examples: [12],
      }),
      ...lastFailure,
    }),
  },
  disabled: {
    when: "Another webhook of the project was disabled.",
    data: Schema.Struct({
      ...ofWebhook,
      reason: Schema.Literals(["gone", "failing"]).annotate({
        description: "Why: it answered 410, or every attempt has failed for days.",
      }),
      ...lastFailure,
    }),
  },
}

/** The host's own event, with any other type. */
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
    type: type.annotateKey({ description: "The type of the event." }),
    timestamp: instant,
    traceparent: Schema.optionalKey(traceparent),
    data: data.annotateKey({ description: "What happened, by its type." }),
  }).annotate({ identifier })

/** An event's schema name: `membership.extended` has `MembershipExtended`. */
const nameOf = (type: string): string =>
  type.replaceAll(/(?:^|\.)(\w)/g, (_, letter: string) => letter.toUpperCase())

/** A webhook in the document. */
export interface Notification {
  readonly type: string
  readonly when: string
  /** Its schema's name. */
  readonly name: string
  readonly schema: Schema.Top
}

const notification = (type: string, kind: Kind, typeSchema: Schema.Top): Notification => {
  const name = `${nameOf(type)}Event`
  return { type, when: kind.when, name, schema: schemaOf(typeSchema, kind, name) }
}

/** The events sent to webhooks. */
export const notifications: ReadonlyArray<Notification> = [
  ...Struct.keys(kinds).map((name) =>
    notification(knownEventTypes[name], kinds[name], Schema.Literal(knownEventTypes[name])),
  ),
  notification(
    "custom",
    custom,
    Schema.String.check(Schema.isPattern(eventTypePattern)).annotate({
      description: "Any type that Tenure does not publish itself.",
      examples: ["payment.completed"],
    }),
  ),
]
