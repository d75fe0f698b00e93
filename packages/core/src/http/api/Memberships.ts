/** The operations on memberships. */

import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as Bulk from "../../memberships/Bulk.ts"
import { membershipActions, membershipStates } from "../../memberships/Membership.ts"
import * as UserIds from "../../memberships/UserIds.ts"
import * as RequestBody from "../RequestBody.ts"
import { table } from "../Route.ts"
import * as AuditRows from "./AuditRows.ts"
import { Authorization } from "./Authorization.ts"
import * as Failures from "./Failures.ts"
import * as Fields from "./Fields.ts"
import { counted, paged, success } from "./Successes.ts"

const {
  "memberships.end": end,
  "memberships.extend": extend,
  "memberships.extendAll": extendAll,
  "memberships.get": get,
  "memberships.grant": grant,
  "memberships.history": history,
  "memberships.import": importing,
  "memberships.list": list,
} = table

const state = Schema.Literals(membershipStates).annotate({
  identifier: "MembershipState",
  description: "Whether the end date is over.",
})

const membership = Schema.Struct({
  user_id: Fields.userId,
  end_date: Fields.instant,
  state,
}).annotate({ identifier: "Membership" })

const extending = Schema.Struct({
  extend: Fields.endDate.annotate({
    description: "A future date: Unix time in milliseconds, or YYYY-MM-DDTHH:mm:ss.sssZ.",
  }),
  dry_run: Schema.optionalKey(Schema.Boolean).annotateKey({
    description:
      "If true, nothing is changed. The response is that of the same request without it.",
  }),
  reason: Schema.optionalKey(Fields.reason),
})

const mode = Schema.optionalKey(Schema.Literals(Object.values(Bulk.modeNames)))

const bulkExtension = Schema.Struct({
  ...extending.fields,
  mode: mode.annotateKey({
    description:
      "Whether memberships that end later are set, too, or left as they are. The default is the server's.",
  }),
}).annotate({ identifier: "BulkExtension" })

const extension = Schema.Struct({
  ...extending.fields,
  expected_end_date: Schema.optionalKey(Fields.endDate).annotateKey({
    description: "If given, the membership is changed only if it has this end date.",
  }),
  mode: mode.annotateKey({
    description:
      "Whether a membership that ends later is set, too, which is the default, or left as it is.",
  }),
}).annotate({ identifier: "Extension" })

const extended = Schema.Struct({ new_end_date: Fields.instant }).annotate({
  identifier: "Extended",
})

const bulkExtended = Schema.Struct({
  ...extended.fields,
  would_shorten: Schema.optionalKey(Schema.Int).annotateKey({
    description: "Of a dry run, the number of memberships that would end earlier than they do now.",
  }),
}).annotate({ identifier: "BulkExtended" })

const granting = Schema.Struct({
  end_date: Fields.endDate.annotate({
    description:
      "A date, which may be over: Unix time in milliseconds, or YYYY-MM-DDTHH:mm:ss.sssZ.",
  }),
  reason: Schema.optionalKey(Fields.reason),
}).annotate({ identifier: "Grant" })

const change = Schema.Struct(AuditRows.fieldsOf(membershipActions)).annotate({
  identifier: "MembershipChange",
})

const importLines = Schema.String.annotate({
  identifier: "Import",
  description:
    "A JSON object in each line, with `user_id` and `end_date`: a date, which may be over, in either format of `extend`. At most 10,000 lines and 2 MiB.",
  examples: [
    '{"user_id":"1001","end_date":"2099-01-01T00:00:00.000Z"}\n{"user_id":"1002","end_date":4070908800000}\n',
  ],
}).pipe(HttpApiSchema.asText({ contentType: RequestBody.lines.mediaType }))

/** The operations on memberships. */
export class Memberships extends HttpApiGroup.make("memberships")
  .add(
    HttpApiEndpoint.make(extend.method)("extend", extend.pattern, {
      params: { project_id: Fields.projectId, user_id: Fields.userId },
      payload: extension,
      success: counted(extended, "The membership was extended."),
      error: [
        ...Failures.inProject,
        ...Failures.once,
        Failures.failure("MembershipNotFound"),
        Failures.failure("EndDateConflict", { current_end_date: Fields.instant }),
        ...Failures.endDate,
        Failures.failure("InvalidInput"),
      ],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Extend a membership",
        description:
          "Sets the end date of a membership, which may have expired. `new_end_date` is the end date afterwards: with the mode `never_shorten`, it may be later than `extend`.",
      }),
    ),
    HttpApiEndpoint.make(extendAll.method)("extendAll", extendAll.pattern, {
      params: { project_id: Fields.projectId },
      payload: bulkExtension,
      success: counted(bulkExtended, "All memberships of the project were extended."),
      error: [
        ...Failures.inProject,
        ...Failures.once,
        ...Failures.endDate,
        Failures.failure("InvalidInput"),
      ],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Extend all memberships",
        description:
          "Sets the end date of all memberships of a project. `total` is the number of memberships whose end date was set.",
      }),
    ),
    HttpApiEndpoint.make(importing.method)("import", importing.pattern, {
      params: { project_id: Fields.projectId },
      payload: importLines,
      success: counted(Schema.Null, "The memberships were imported."),
      error: [
        ...Failures.inProject,
        ...Failures.once,
        Failures.lines,
        Failures.failure("InvalidInput"),
      ],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Import memberships",
        description:
          "Creates memberships of different users, or sets the end dates of those that exist: all of them, or none. `total` is the number of lines.",
      }),
    ),
    HttpApiEndpoint.make(list.method)("list", list.pattern, {
      params: { project_id: Fields.projectId },
      query: {
        ...Fields.page,
        state: Schema.optionalKey(state),
        user_ids: Schema.optionalKey(Schema.String).annotateKey({
          description: `Only the memberships of these users: ${UserIds.expected}, joined by commas.`,
          examples: ["1001,1002"],
        }),
        ending_before: Schema.optionalKey(Fields.instant).annotateKey({
          description:
            "Only active memberships that end before this time, soonest first. Not with `state` or `user_ids`.",
        }),
      },
      success: paged(Schema.Array(membership), "The memberships of the project."),
      error: [...Failures.inProject, Failures.failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "List memberships",
        description:
          "Returns the memberships of a project in the order of their user ids, compared as text; with `state`, only those that are active, or only those that have expired. With `ending_before`, they are in the order of their end dates, and a page may have fewer than `limit`, or none, before the last.",
      }),
    ),
    HttpApiEndpoint.make(get.method)("get", get.pattern, {
      params: { project_id: Fields.projectId, user_id: Fields.userId },
      success: success(membership, "The membership."),
      error: [
        ...Failures.inProject,
        Failures.failure("MembershipNotFound"),
        Failures.failure("InvalidInput"),
      ],
    }).annotateMerge(
      OpenApi.annotations({ summary: "Get a membership", description: "Returns a membership." }),
    ),
    HttpApiEndpoint.make(grant.method)("grant", grant.pattern, {
      params: { project_id: Fields.projectId, user_id: Fields.userId },
      payload: granting,
      success: success(membership, "The membership was granted."),
      error: [...Failures.inProject, ...Failures.once, Failures.failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Grant a membership",
        description: "Creates a membership, or sets the end date of an existing one.",
      }),
    ),
    HttpApiEndpoint.make(end.method)("end", end.pattern, {
      params: { project_id: Fields.projectId, user_id: Fields.userId },
      query: {
        erase: Schema.optionalKey(
          Schema.Literals(["true", "false"]).annotate({
            description: "Whether to erase the person, which needs the role `admin`.",
          }),
        ),
      },
      success: success(Schema.Null, "The membership was ended."),
      error: [
        ...Failures.inProject,
        ...Failures.once,
        Failures.failure("MembershipNotFound"),
        Failures.failure("InvalidInput"),
      ],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "End a membership",
        description:
          "Removes a membership. The user can be granted another one. With `erase=true`, also removes the user id from the history and from events, and succeeds if the membership has ended.",
      }),
    ),
    HttpApiEndpoint.make(history.method)("history", history.pattern, {
      params: { project_id: Fields.projectId, user_id: Fields.userId },
      query: Fields.page,
      success: paged(Schema.Array(change), "The changes of the membership, newest first."),
      error: [
        ...Failures.inProject,
        Failures.failure("MembershipNotFound"),
        Failures.failure("InvalidInput"),
      ],
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
