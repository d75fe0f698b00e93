/** The operations on memberships. */

import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { jsonLines } from "../http/operation.ts"
import { routes } from "../http/routes.ts"
import { bulkModeNames, bulkChangeNames } from "../memberships/end-date.ts"
import { durationStarts } from "../memberships/extensions.ts"
import {
  membershipActions,
  membershipStates,
  userIdPattern,
  userIdsFormat,
} from "../memberships/membership.ts"
import { maxMetadata, metadataNamePattern, metadataValuePattern } from "../memberships/metadata.ts"
import { ActivityCell } from "./groups.generated.ts"
import {
  Authorization,
  commonFailures,
  counted,
  endDate,
  endDateConflict,
  endDateFailure,
  eventType,
  exampleId,
  failure,
  fieldsOf,
  idempotencyFailures,
  instant,
  linesFailure,
  metadata,
  pageParameters,
  paged,
  projectFailures,
  projectId,
  reason,
  row,
  success,
  userId,
  webhookId,
} from "./schemas.ts"

const {
  "memberships.bulkExtensions": bulkExtensions,
  "memberships.end": end,
  "memberships.ends": ends,
  "memberships.extend": extend,
  "memberships.extendAll": extendAll,
  "memberships.get": get,
  "memberships.grant": grant,
  "memberships.history": history,
  "memberships.import": importing,
  "memberships.list": list,
  "memberships.undoBulkExtension": undoBulkExtension,
  "memberships.update": update,
} = routes

const state = Schema.Literals(membershipStates).annotate({
  identifier: "MembershipState",
  description: "Whether the end date is over.",
})

const membership = Schema.Struct({
  user_id: userId,
  end_date: instant,
  state,
  metadata,
}).annotate({ identifier: "Membership" })

const extending = Schema.Struct({
  extend: Schema.optionalKey(endDate).annotateKey({
    description:
      "A future date: Unix time in milliseconds, or YYYY-MM-DDTHH:mm:ss.sssZ. Needed without `extend_by`.",
  }),
  dry_run: Schema.optionalKey(Schema.Boolean).annotateKey({
    description:
      "If true, nothing is changed. The response is that of the same request without it.",
  }),
  events: Schema.optionalKey(Schema.Boolean).annotateKey({
    description: "If true, a dry run also returns the webhooks that the request would send.",
  }),
  reason: Schema.optionalKey(reason),
})

/** Previewed webhooks. */
const events = Schema.Struct({
  total: Schema.Int,
  by_type: Schema.Record(Schema.String, Schema.Int).annotateKey({
    description: "How many webhooks, by the type of their event.",
    examples: [{ "membership.extended": 1 }],
  }),
  first: Schema.Array(
    Schema.Struct({
      webhook_id: webhookId,
      url: Schema.String.annotate({ examples: ["https://receiver.example/"] }),
      type: eventType,
      body: Schema.Record(Schema.String, Schema.Unknown).annotateKey({
        description:
          "What would be sent. The time, the id of the request and the sequence number are not final.",
      }),
    }),
  )
    .check(Schema.isMaxLength(10))
    .annotateKey({ description: "The first ten." }),
}).annotate({ identifier: "EventsPreview" })

const withEvents = {
  events: Schema.optionalKey(events).annotateKey({
    description: "Of a dry run with `events`, the webhooks that the request would send at once.",
  }),
}

const mode = Schema.optionalKey(Schema.Literals(Object.values(bulkModeNames)))

const exampleDate = Date.UTC(2099, 0, 1)

/** An idempotency key is needed with a duration. */
const repeatable = "Needs the header `Idempotency-Key`"

const bulkExtension = Schema.Struct({
  ...extending.fields,
  extend_by: Schema.optionalKey(Schema.String).annotateKey({
    description: `In place of \`extend\`: how much later every membership ends, a duration of ISO 8601 in weeks, days, hours, minutes and seconds of at most ten years. ${repeatable}.`,
    examples: ["P3D"],
  }),
  mode: mode.annotateKey({
    description:
      "Whether memberships that end later are set, too, or left as they are. The default is the server's.",
  }),
}).annotate({ identifier: "BulkExtension", examples: [{ extend: exampleDate }] })

const extension = Schema.Struct({
  ...extending.fields,
  extend_by: Schema.optionalKey(Schema.String).annotateKey({
    description: `In place of \`extend\`: how much later the membership ends, a duration of ISO 8601, added in UTC. ${repeatable} or \`expected_end_date\`.`,
    examples: ["P1M"],
  }),
  from: Schema.optionalKey(Schema.Literals(durationStarts)).annotateKey({
    description:
      "From when `extend_by` counts: the end date, now, or the later of both, which is the default.",
  }),
  expected_end_date: Schema.optionalKey(endDate).annotateKey({
    description: "If given, the membership is changed only if it has this end date.",
  }),
  mode: mode.annotateKey({
    description:
      "Whether a membership that ends later is set, too, which is the default, or left as it is.",
  }),
}).annotate({ identifier: "Extension", examples: [{ extend: exampleDate }] })

const extended = Schema.Struct({
  new_end_date: instant,
  end_date: Schema.optionalKey(instant).annotateKey({
    description: "The same date, of an extension by a duration.",
  }),
  ...withEvents,
}).annotate({ identifier: "Extended" })

/** What a dry run of a change of all memberships shows. */
const preview = {
  would_shorten: Schema.optionalKey(Schema.Int).annotateKey({
    description: "Of a dry run, the number of memberships that would end earlier than they do now.",
  }),
  would_reactivate: Schema.optionalKey(Schema.Int).annotateKey({
    description:
      "Of a dry run, the number of memberships that have ended and would be active again.",
  }),
  would_be_capped: Schema.optionalKey(Schema.Int).annotateKey({
    description:
      "Of a dry run, the number of memberships that would end at the last instant of the year 9999, and do not now.",
  }),
  total: Schema.optionalKey(Schema.Int).annotateKey({
    description: "The number of memberships of the project.",
  }),
  examples: Schema.optionalKey(
    Schema.Array(Schema.Struct({ user_id: userId, end_date: instant, would_end: instant })),
  ).annotateKey({
    description: "Of a dry run, up to ten memberships that would end at another date.",
  }),
  ...withEvents,
}

const bulkExtended = Schema.Struct({
  new_end_date: Schema.optionalKey(instant).annotateKey({
    description: "The new end date, of an extension to a date.",
  }),
  extend_by: Schema.optionalKey(Schema.String).annotateKey({
    description: "The duration, of an extension by one.",
    examples: ["P3D"],
  }),
  ...preview,
}).annotate({ identifier: "BulkExtended" })

const undone = Schema.Struct(preview).annotate({ identifier: "BulkExtensionUndoing" })

const bulkExtensionRecord = Schema.Struct({
  id: Schema.String.annotate({
    description: "The id of its event.",
    examples: [exampleId],
  }),
  mode: Schema.Literals(Object.values(bulkChangeNames)),
  end_date: Schema.NullOr(instant),
  extend_by: Schema.NullOr(Schema.String).annotate({ examples: ["P3D"] }),
  at: instant,
  reason: Schema.NullOr(Schema.String),
  key_id: Schema.NullOr(Schema.String),
  request_id: Schema.NullOr(Schema.String),
  total: Schema.Int.annotate({ description: "The number of memberships then." }),
  undone_at: Schema.NullOr(instant),
  undone_by: Schema.NullOr(Schema.String).annotate({
    description: "The id of the API key, or of whom else the host named.",
  }),
}).annotate({ identifier: "BulkExtensionRecord" })

const day = Schema.String.check(Schema.isPattern(/^\d{4}-\d{2}-\d{2}$/u)).annotate({
  identifier: "Day",
  description: "A day in UTC.",
  examples: ["2099-01-31"],
})

const members = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

const counts = Schema.Struct({
  at: instant.annotateKey({ description: "When the memberships were counted." }),
  total: members,
  active: members,
  expired: members,
  ends_today: members.annotateKey({
    description: "Memberships that end on the day of `at`, with those that have ended on it.",
  }),
  ends_in_7_days: members.annotateKey({
    description:
      "Active memberships that end within seven times 24 hours: those that the list has with `ending_before`.",
  }),
  days: Schema.Array(
    Schema.Struct({
      day,
      ends: members.annotateKey({
        description: "Memberships that end on this day, or have ended.",
      }),
      extended: Schema.NullOr(members).annotateKey({
        description:
          "Memberships that were extended or granted on this day, each by itself, by the audit trail: null if that is not kept any more, or too long to be counted.",
      }),
    }),
  ).check(Schema.isMaxLength(400)),
}).annotate({ identifier: "EndCounts" })

const undoing = Schema.Struct({
  reason: Schema.optionalKey(reason),
  dry_run: extending.fields.dry_run,
  events: extending.fields.events,
}).annotate({ identifier: "Undo" })

const granting = Schema.Struct({
  end_date: endDate.annotate({
    description:
      "A date, which may be over: Unix time in milliseconds, or YYYY-MM-DDTHH:mm:ss.sssZ.",
  }),
  metadata: Schema.optionalKey(metadata).annotateKey({
    description: "Replaces that of the membership. Without it, that stays.",
  }),
  reason: Schema.optionalKey(reason),
}).annotate({ identifier: "Grant" })

const updating = Schema.Struct({
  metadata: Schema.Record(
    Schema.String.check(Schema.isPattern(metadataNamePattern)),
    Schema.NullOr(Schema.String.check(Schema.isPattern(metadataValuePattern))),
  )
    .check(Schema.isMaxProperties(maxMetadata))
    .annotate({
      description: "New texts by name, and null for what is removed. Other names stay.",
      examples: [{ plan: "gold", seat: null }],
    }),
  reason: Schema.optionalKey(reason),
}).annotate({ identifier: "MembershipUpdate" })

const change = Schema.Struct(fieldsOf(membershipActions)).annotate({
  identifier: "MembershipChange",
})

const importPreview = Schema.Struct({
  would_grant: Schema.Int.annotateKey({
    description: "Of a dry run, the number of memberships that would be created.",
  }),
  would_shorten: Schema.Int.annotateKey({
    description: "Of a dry run, the number of memberships that would end earlier than they do now.",
  }),
  would_stay: Schema.Int.annotateKey({
    description: "Of a dry run, the number of memberships that would keep their end date.",
  }),
  events: Schema.optionalKey(events),
})

const importLines = Schema.String.annotate({
  identifier: "Import",
  description:
    "A JSON object in each line, with `user_id` and `end_date`: a date, which may be over, in either format of `extend`; perhaps with `metadata`, as of a grant. At most 10,000 lines and 2 MiB, sent unquoted.",
  examples: [
    '{"user_id":"1001","end_date":"2099-01-01T00:00:00.000Z"}\n{"user_id":"1002","end_date":4070908800000}\n',
  ],
}).pipe(HttpApiSchema.asText({ contentType: jsonLines.mediaType }))

/** The operations on memberships. */
export class Memberships extends HttpApiGroup.make("memberships")
  .add(
    HttpApiEndpoint.make(extend.method)("extend", extend.pattern, {
      params: { project_id: projectId, user_id: userId },
      payload: extension,
      success: counted(extended, "The membership was extended."),
      error: [
        ...projectFailures,
        ...idempotencyFailures,
        failure("MembershipNotFound"),
        endDateConflict,
        ...endDateFailure,
        failure("InvalidInput"),
      ],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Extend a membership",
        description:
          "Sets the end date of a membership, which may have expired. `new_end_date` is the end date afterwards: with the mode `never_shorten`, it may be later than `extend`.",
      }),
    ),
    HttpApiEndpoint.make(extendAll.method)("extendAll", extendAll.pattern, {
      params: { project_id: projectId },
      payload: bulkExtension,
      success: counted(bulkExtended, "All memberships of the project were extended."),
      error: [
        ...projectFailures,
        ...idempotencyFailures,
        ...endDateFailure,
        failure("InvalidInput"),
      ],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Extend all memberships",
        description:
          "Sets the end date of all memberships of a project. `total` is the number of memberships whose end date was set.",
      }),
    ),
    HttpApiEndpoint.make(bulkExtensions.method)("bulkExtensions", bulkExtensions.pattern, {
      params: { project_id: projectId },
      query: pageParameters,
      success: paged(
        Schema.Array(bulkExtensionRecord),
        "The bulk extensions of the project, newest first.",
      ),
      error: [...projectFailures, failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "List bulk extensions",
        description: "Returns the extensions of all memberships, newest first, also undone ones.",
      }),
    ),
    HttpApiEndpoint.make(ends.method)("ends", ends.pattern, {
      params: { project_id: projectId },
      query: {
        from: Schema.optionalKey(day).annotateKey({
          description:
            "The first day. By default, 59 days before `to`; without that, 14 days before today.",
        }),
        to: Schema.optionalKey(day).annotateKey({
          description:
            "The last day, less than 400 days later. By default, 59 days after `from`; without that, 45 days after today.",
        }),
        extend: Schema.optionalKey(Schema.String).annotateKey({
          description:
            "Counts as if all memberships had been extended to this date, in either format of `extend`. Nothing is changed.",
          examples: ["2099-01-01T00:00:00.000Z"],
        }),
        mode: mode.annotateKey({
          description:
            "With `extend`: whether memberships that end later are set, too, or left as they are. The default is the server's.",
        }),
        extend_by: Schema.optionalKey(Schema.String).annotateKey({
          description: "Counts as if all memberships had been extended by this duration.",
          examples: ["P3D"],
        }),
      },
      success: success(counts, "How many memberships end on each day."),
      error: [...projectFailures, ...endDateFailure, failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Count memberships by the day of their end",
        description:
          "Returns how many memberships of a project are active, and how many end on each day in UTC, counted at this moment. It reads all memberships, so a server counts for one request at a time, and requests for the same wait for one count; if too many different ones wait, it responds with 503.",
      }),
    ),
    HttpApiEndpoint.make(undoBulkExtension.method)("undoBulkExtension", undoBulkExtension.pattern, {
      params: {
        project_id: projectId,
        bulk_extension_id: Schema.String.annotate({ examples: [exampleId] }),
      },
      payload: undoing,
      success: counted(undone, "The bulk extension was undone."),
      error: [
        ...projectFailures,
        ...idempotencyFailures,
        failure("BulkExtensionNotFound"),
        failure("BulkExtensionUndone"),
        failure("BulkExtensionSettled"),
        failure("InvalidInput"),
      ],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Undo a bulk extension",
        description:
          "Changes every end date to what it would be without the bulk extension. Later changes to single members are kept.",
      }),
    ),
    HttpApiEndpoint.make(importing.method)("import", importing.pattern, {
      params: { project_id: projectId },
      query: {
        dry_run: Schema.optionalKey(
          Schema.Literals(["true", "false"]).annotate({
            description: "With `true`, the lines are judged, and nothing is changed.",
          }),
        ),
        events: Schema.optionalKey(
          Schema.Literals(["true", "false"]).annotate({
            description: "With `true`, a dry run returns the webhooks that the import would send.",
          }),
        ),
      },
      payload: importLines,
      success: counted(Schema.NullOr(importPreview), "The memberships were imported."),
      error: [...projectFailures, ...idempotencyFailures, linesFailure, failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Import memberships",
        description:
          "Creates memberships of different users, or sets the end dates of those that exist: all of them, or none. `total` is the number of lines.",
      }),
    ),
    HttpApiEndpoint.make(list.method)("list", list.pattern, {
      params: { project_id: projectId },
      query: {
        ...pageParameters,
        state: Schema.optionalKey(state),
        user_ids: Schema.optionalKey(Schema.String).annotateKey({
          description: `Only the memberships of these users: ${userIdsFormat}, joined by commas. In an id, a comma is written %2C and a percent sign %25.`,
          examples: ["1001,1002"],
        }),
        prefix: Schema.optionalKey(
          Schema.String.check(Schema.isPattern(userIdPattern)),
        ).annotateKey({
          description:
            "Only the memberships of users whose ids start with this text, also with `state`. Not with `user_ids`.",
          examples: ["10"],
        }),
        ending_before: Schema.optionalKey(instant).annotateKey({
          description:
            "Only active memberships that end before this time, soonest first. Not with `state`, `user_ids` or `prefix`.",
        }),
      },
      success: paged(Schema.Array(membership), "The memberships of the project."),
      error: [...projectFailures, failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "List memberships",
        description:
          "Returns the memberships of a project in the order of their user ids, compared as text; with `state`, only those that are active, or only those that have expired. With `ending_before`, they are in the order of their end dates, and a page may have fewer than `limit`, or none, before the last.",
      }),
    ),
    HttpApiEndpoint.make(get.method)("get", get.pattern, {
      params: { project_id: projectId, user_id: userId },
      success: success(membership, "The membership."),
      error: [...projectFailures, failure("MembershipNotFound"), failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({ summary: "Get a membership", description: "Returns a membership." }),
    ),
    HttpApiEndpoint.make(grant.method)("grant", grant.pattern, {
      params: { project_id: projectId, user_id: userId },
      payload: granting,
      success: success(membership, "The membership was granted."),
      error: [...projectFailures, ...idempotencyFailures, failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Grant a membership",
        description: "Creates a membership, or sets the end date of an existing one.",
      }),
    ),
    HttpApiEndpoint.make(update.method)("update", update.pattern, {
      params: { project_id: projectId, user_id: userId },
      payload: updating,
      success: success(membership, "The membership was updated."),
      error: [
        ...projectFailures,
        ...idempotencyFailures,
        failure("MembershipNotFound"),
        failure("InvalidInput"),
      ],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Update a membership",
        description: "Changes the metadata of a membership, and leaves its end date.",
      }),
    ),
    HttpApiEndpoint.make(end.method)("end", end.pattern, {
      params: { project_id: projectId, user_id: userId },
      query: {
        erase: Schema.optionalKey(
          Schema.Literals(["true", "false"]).annotate({
            description: "Whether to erase the person, which needs the role `admin`.",
          }),
        ),
      },
      success: success(Schema.Null, "The membership was ended."),
      error: [
        ...projectFailures,
        ...idempotencyFailures,
        failure("MembershipNotFound"),
        failure("InvalidInput"),
      ],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "End a membership",
        description:
          "Removes a membership. The user can be granted another one. With `erase=true`, also removes the user id from the history and from events, and succeeds if the membership has ended.",
      }),
    ),
    HttpApiEndpoint.make(history.method)("history", history.pattern, {
      params: { project_id: projectId, user_id: userId },
      query: pageParameters,
      success: paged(Schema.Array(change), "The changes of the membership, newest first."),
      error: [...projectFailures, failure("MembershipNotFound"), failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "List the changes of a membership",
        description:
          "Returns the changes of a membership, newest first, also of one that has ended; among them the bulk extensions that applied to it.",
      }),
    ),
  )
  .middleware(Authorization)
  .annotate(OpenApi.Title, "Memberships")
  .annotate(OpenApi.Description, "Who is a member of a project, and until when.") {}

/** The operations on projects. */

const {
  "projects.activity": projectsActivity,
  "projects.audit": audit,
  "projects.create": create,
  "projects.delete": deletion,
  "projects.get": projectsGet,
  "projects.list": projectsList,
} = routes

const count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({ examples: [1] })

const listed = Schema.Struct({
  id: projectId,
  memberships: count.annotateKey({
    description: "The number of memberships, with those that have expired.",
  }),
  webhooks: count.annotateKey({ description: "The number of webhooks." }),
}).annotate({ identifier: "ListedProject" })

const project = Schema.Struct({
  ...listed.fields,
  last_bulk_end_date: Schema.NullOr(instant).annotateKey({
    description: "The date that all memberships were last extended to.",
  }),
}).annotate({ identifier: "Project" })

/** The operations on projects. */
export class Projects extends HttpApiGroup.make("projects")
  .add(
    HttpApiEndpoint.make(projectsList.method)("list", projectsList.pattern, {
      query: pageParameters,
      success: paged(Schema.Array(listed), "The projects."),
      error: [...commonFailures, failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "List projects",
        description:
          "Returns the projects that the key opens, in the order of their ids, compared as text.",
      }),
    ),
    HttpApiEndpoint.make(create.method)("create", create.pattern, {
      params: {
        project_id: projectId.annotate({
          description: "An id of your own: 1 to 255 characters, none of them a control character.",
        }),
      },
      success: success(project, "The project exists."),
      error: [...projectFailures, ...idempotencyFailures, failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Create a project",
        description: "Creates a project. Does nothing if it exists.",
      }),
    ),
    HttpApiEndpoint.make(projectsGet.method)("get", projectsGet.pattern, {
      params: { project_id: projectId },
      success: success(project, "The project."),
      error: [...projectFailures, failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({ summary: "Get a project", description: "Returns a project." }),
    ),
    HttpApiEndpoint.make(deletion.method)("delete", deletion.pattern, {
      params: { project_id: projectId },
      success: success(Schema.Null, "The project was deleted."),
      error: [...projectFailures, ...idempotencyFailures, failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Delete a project",
        description:
          "Deletes a project with its memberships, webhooks, events and deliveries. API keys do not open it any more, even if it is created again.",
      }),
    ),
    HttpApiEndpoint.make(audit.method)("audit", audit.pattern, {
      params: { project_id: projectId },
      query: pageParameters,
      success: paged(Schema.Array(row), "The audit trail of the project, newest first."),
      error: [...projectFailures, failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "List the changes of a project",
        description:
          "Returns who changed memberships and webhooks of a project, newest first, for as long as the server keeps it.",
      }),
    ),
    HttpApiEndpoint.make(projectsActivity.method)("activity", projectsActivity.pattern, {
      params: { project_id: projectId },
      success: success(
        Schema.Struct({
          minutes: Schema.Array(ActivityCell).annotate({
            description: "Sixty minutes, oldest first; the last one goes on.",
          }),
        }).annotate({ identifier: "ProjectActivity" }),
        "What was delivered for the project in the last hour.",
      ),
      error: [...projectFailures, failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Get a project's last hour",
        description:
          "Counts the attempts to deliver events of a project by the minute, over all servers. Attempts that another server made may be missing for up to 10 seconds.",
      }),
    ),
  )
  .middleware(Authorization)
  .annotate(OpenApi.Title, "Projects")
  .annotate(OpenApi.Description, "What memberships, webhooks and keys belong to.") {}

/** The operation on the audit trail of what belongs to no project. */

const { "audit.list": auditList } = routes

/** The operation on the audit trail of what belongs to no project. */
export class Audit extends HttpApiGroup.make("audit")
  .add(
    HttpApiEndpoint.make(auditList.method)("list", auditList.pattern, {
      query: pageParameters,
      success: paged(Schema.Array(row), "The audit trail of projects and API keys, newest first."),
      error: [...commonFailures, failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "List changes of projects and keys",
        description:
          "Returns who created and deleted projects, and who issued and revoked API keys, newest first. Needs a key that opens all projects.",
      }),
    ),
  )
  .middleware(Authorization)
  .annotate(OpenApi.Title, "Audit trail")
  .annotate(OpenApi.Description, "Who changed what, beside the changes of a project.") {}
