/** The operations on memberships. */

import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as Schema from "effect/Schema"
import { table } from "../Route.ts"
import { Authorization } from "./Authorization.ts"
import * as Failures from "./Failures.ts"
import * as Fields from "./Fields.ts"
import { counted } from "./Successes.ts"

const { "memberships.extend": extend, "memberships.extendAll": extendAll } = table

const extension = Schema.Struct({
  extend: Fields.endDate.annotate({
    description: "A future date: Unix time in milliseconds, or YYYY-MM-DDTHH:mm:ss.sssZ.",
  }),
})

const extended = counted(Schema.Struct({ new_end_date: Schema.String }))

/** The operations on memberships. */
export class Memberships extends HttpApiGroup.make("memberships")
  .add(
    HttpApiEndpoint.make(extend.method)("extend", extend.pattern, {
      params: { project_id: Fields.projectId, user_id: Fields.userId },
      payload: extension,
      success: extended,
      error: [...Failures.inProject, Failures.failure("MembershipNotFound"), ...Failures.endDate],
    }),
    HttpApiEndpoint.make(extendAll.method)("extendAll", extendAll.pattern, {
      params: { project_id: Fields.projectId },
      payload: extension,
      success: extended,
      error: [...Failures.inProject, ...Failures.endDate],
    }),
  )
  .middleware(Authorization) {}
