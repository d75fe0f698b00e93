/**
 * The contract as an `HttpApi`, for the OpenAPI document and a typed client. `Handler` answers the
 * requests, without the cost of schemas. No other module of the library imports this one, so only
 * programs that use it load schemas.
 */

import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as HttpApiSecurity from "effect/http-api/HttpApiSecurity"
import * as OpenApi from "effect/http-api/OpenApi"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Instant from "../base/Instant.ts"
import * as EndDate from "../memberships/EndDate.ts"
import { userIdPattern } from "../memberships/Membership.ts"
import * as ApiError from "./ApiError.ts"
import * as Route from "./Route.ts"

const requestFields = {
  request_id: Schema.String.check(Schema.isUUID()),
  method: Schema.String,
  path: Schema.String,
}

const success = <Data extends Schema.Top>(data: Data) =>
  Schema.Struct({
    ok: Schema.Literal(true),
    ...requestFields,
    code: Schema.Literal(200),
    message: Schema.String,
    data,
  })

const successWithTotal = <Data extends Schema.Top>(data: Data) =>
  Schema.Struct({ ...success(data).fields, total: Schema.Int })

const failureFields = <Status extends number>(status: Status) => ({
  ok: Schema.Literal(false),
  ...requestFields,
  code: Schema.Literal(status),
})

const errorWith = <Code extends string>(codes: ReadonlyArray<Code>) =>
  Schema.Struct({ error_code: Schema.Literals(codes), message: Schema.String })

/** The response to one of these errors, which have the same status. */
const failure = <Tag extends ApiError.Tag>(...tags: readonly [Tag, ...ReadonlyArray<Tag>]) => {
  const { status } = ApiError.table[tags[0]]
  const codes = new Set(tags.map((tag) => ApiError.table[tag].code))
  return Schema.Struct({ ...failureFields(status), error: errorWith([...codes]) }).pipe(
    HttpApiSchema.status(status),
  )
}

const { InvalidEndDate, RateLimited } = ApiError.table

/** The response to an `extend` in neither format, with an error for each of them. */
const neitherFormat = Schema.Struct({
  ...failureFields(InvalidEndDate.status),
  errors: Schema.Tuple([errorWith([InvalidEndDate.code]), errorWith([InvalidEndDate.code])]),
}).pipe(HttpApiSchema.status(InvalidEndDate.status))

const rateLimited = Schema.Struct({
  ...requestFields,
  code: Schema.Literal(RateLimited.status),
  error: Schema.Struct({
    message: Schema.String,
    code: Schema.Literal(RateLimited.code),
    retry_after: Schema.Int,
  }),
}).pipe(HttpApiSchema.status(RateLimited.status))

/** The errors of every endpoint. */
const common = [
  failure("MalformedRequest"),
  failure("Unauthorized"),
  failure("Forbidden"),
  failure("MethodNotAllowed"),
  failure("RequestTimeout"),
  failure("PayloadTooLarge"),
  failure("UnsupportedMediaType"),
  rateLimited,
  failure("RequestHeadersTooLarge"),
  failure("InternalError"),
  failure("StoreUnavailable"),
] as const

const projectNotFound = failure("ProjectNotFound")
const notInFuture = failure("EndDateNotInFuture")

const extension = Schema.Struct({
  extend: Schema.Union([
    Schema.Int.check(Schema.isBetween(EndDate.timestamps)),
    Schema.String.check(Schema.isPattern(Instant.pattern)),
  ]).annotate({
    description: "A future date: Unix time in milliseconds, or YYYY-MM-DDTHH:mm:ss.sssZ.",
  }),
})

const extended = successWithTotal(Schema.Struct({ new_end_date: Schema.String }))

const webhook = Schema.Struct({
  url: Schema.String,
  id: Schema.String.check(Schema.isUUID()),
  secret: Schema.String,
})

const projectId = Schema.String.annotate({ description: "The project." })
const userId = Schema.String.check(Schema.isPattern(userIdPattern)).annotate({
  description: "The user.",
})
const webhookId = Schema.String.annotate({ description: "The webhook." })

/** Authentication by an API key, sent as a bearer token. */
export class Authorization extends HttpApiMiddleware.Service<Authorization>()(
  "@tenure/core/Api/Authorization",
  { requiredForClient: true, security: { bearer: HttpApiSecurity.bearer } },
) {
  /** Sends a token with every request of a client. */
  static readonly layerClient = (
    token: Redacted.Redacted,
  ): Layer.Layer<HttpApiMiddleware.ForClient<Authorization>> =>
    HttpApiMiddleware.layerClient(this, ({ next, request }) =>
      next(HttpClientRequest.bearerToken(request, token)),
    )
}

const {
  "memberships.extend": extend,
  "memberships.extendAll": extendAll,
  "webhooks.create": create,
  "webhooks.delete": remove,
  "webhooks.list": list,
} = Route.table

class MembershipsGroup extends HttpApiGroup.make("memberships")
  .add(
    HttpApiEndpoint.make(extend.method)("extend", extend.pattern, {
      params: { project_id: projectId, user_id: userId },
      payload: extension,
      success: extended,
      error: [
        ...common,
        failure("ProjectNotFound", "MembershipNotFound"),
        neitherFormat,
        notInFuture,
      ],
    }),
    HttpApiEndpoint.make(extendAll.method)("extendAll", extendAll.pattern, {
      params: { project_id: projectId },
      payload: extension,
      success: extended,
      error: [...common, projectNotFound, neitherFormat, notInFuture],
    }),
  )
  .middleware(Authorization) {}

class WebhooksGroup extends HttpApiGroup.make("webhooks")
  .add(
    HttpApiEndpoint.make(create.method)("create", create.pattern, {
      params: { project_id: projectId },
      payload: Schema.Struct({ url: Schema.String }),
      success: success(webhook),
      error: [...common, projectNotFound, failure("InvalidWebhookUrl", "WebhookLimitReached")],
    }),
    HttpApiEndpoint.make(list.method)("list", list.pattern, {
      params: { project_id: projectId },
      success: successWithTotal(Schema.Array(webhook)),
      error: [...common, projectNotFound],
    }),
    HttpApiEndpoint.make(remove.method)("delete", remove.pattern, {
      params: { project_id: projectId, webhook_id: webhookId },
      success: success(Schema.Null),
      error: [...common, failure("ProjectNotFound", "WebhookNotFound")],
    }),
  )
  .middleware(Authorization) {}

/**
 * The API as a value, for a typed client.
 *
 * @example
 * ```ts
 * import * as Api from "@tenure/core/Api"
 * import * as Effect from "effect/Effect"
 * import * as FetchHttpClient from "effect/http/FetchHttpClient"
 * import * as HttpApiClient from "effect/http-api/HttpApiClient"
 * import * as Redacted from "effect/Redacted"
 *
 * const program = Effect.gen(function* () {
 *   const client = yield* HttpApiClient.make(Api.Api, { baseUrl: "http://127.0.0.1:3000" })
 *   const { data } = yield* client.memberships.extend({
 *     params: { project_id: "p1", user_id: "1001" },
 *     payload: { extend: "2099-01-01T00:00:00.000Z" },
 *   })
 *   return data.new_end_date
 * }).pipe(
 *   Effect.provide(Api.Authorization.layerClient(Redacted.make("a token"))),
 *   Effect.provide(FetchHttpClient.layer),
 * )
 * ```
 */
export class Api extends HttpApi.make("tenure")
  .add(MembershipsGroup, WebhooksGroup)
  .annotateMerge(OpenApi.annotations({ title: "Tenure", version: "2" })) {}

/** The OpenAPI document of the API. */
export const openApi = (): OpenApi.OpenAPISpec => OpenApi.fromApi(Api)
