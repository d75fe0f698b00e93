/**
 * The contract as an `HttpApi`, for the OpenAPI document and a typed client. It serves no request:
 * `Handler` does, without what schemas cost. Nothing else in the library imports this module, so
 * that only those who need schemas load them.
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

const subject = {
  request_id: Schema.String.check(Schema.isUUID()),
  method: Schema.String,
  path: Schema.String,
}

const success = <Data extends Schema.Top>(data: Data) =>
  Schema.Struct({
    ok: Schema.Literal(true),
    ...subject,
    code: Schema.Literal(200),
    message: Schema.String,
    data,
  })

const counted = <Data extends Schema.Top>(data: Data) =>
  Schema.Struct({ ...success(data).fields, total: Schema.Int })

const failed = <Status extends number>(status: Status) => ({
  ok: Schema.Literal(false),
  ...subject,
  code: Schema.Literal(status),
})

const described = <Code extends string>(...codes: ReadonlyArray<Code>) =>
  Schema.Struct({ error_code: Schema.Literals(codes), message: Schema.String })

/** A failure with a single error. */
const failure = <Status extends number, Code extends string>(
  status: Status,
  ...codes: ReadonlyArray<Code>
) =>
  Schema.Struct({ ...failed(status), error: described(...codes) }).pipe(
    HttpApiSchema.status(status),
  )

/** An `extend` in neither format: an error for each of the two. */
const neitherFormat = Schema.Struct({
  ...failed(422),
  errors: Schema.Tuple([described("VALIDATION_ERROR"), described("VALIDATION_ERROR")]),
}).pipe(HttpApiSchema.status(422))

const invalid = failure(422, "VALIDATION_ERROR")

const rateLimited = Schema.Struct({
  ...subject,
  code: Schema.Literal(429),
  error: Schema.Struct({
    message: Schema.String,
    code: Schema.Literal("RATE_LIMIT_EXCEEDED"),
    retry_after: Schema.Int,
  }),
}).pipe(HttpApiSchema.status(429))

/** What can happen on every endpoint. */
const common = [
  failure(400, "MALFORMED_REQUEST"),
  failure(401, "UNAUTHORIZED"),
  failure(405, "METHOD_NOT_ALLOWED"),
  failure(408, "REQUEST_TIMEOUT"),
  failure(413, "PAYLOAD_TOO_LARGE"),
  failure(415, "UNSUPPORTED_MEDIA_TYPE"),
  rateLimited,
  failure(431, "REQUEST_HEADERS_TOO_LARGE"),
  failure(500, "INTERNAL_ERROR"),
  failure(503, "SERVICE_UNAVAILABLE"),
] as const

const projectNotFound = failure(404, "PROJECT_NOT_FOUND")
const membershipNotFound = failure(404, "PROJECT_NOT_FOUND", "MEMBERSHIP_NOT_FOUND")
const webhookNotFound = failure(404, "PROJECT_NOT_FOUND", "WEBHOOK_NOT_FOUND")

const extension = Schema.Struct({
  extend: Schema.Union([
    Schema.Int.check(Schema.isBetween({ minimum: 1_000_000_000_000, maximum: 9_999_999_999_999 })),
    Schema.String.check(Schema.isPattern(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/)),
  ]).annotate({
    description: "A future date: Unix time in milliseconds, or YYYY-MM-DDTHH:mm:ss.sssZ.",
  }),
})

const extended = counted(Schema.Struct({ new_end_date: Schema.String }))

const webhook = Schema.Struct({
  url: Schema.String,
  id: Schema.String.check(Schema.isUUID()),
  secret: Schema.String,
})

const projectId = Schema.String.annotate({ description: "The project." })
const userId = Schema.String.check(Schema.isPattern(/^[0-9]{1,64}$/)).annotate({
  description: "The user.",
})
const webhookId = Schema.String.annotate({ description: "The webhook." })

/** Authentication by an API key: a bearer token. */
export class Authorization extends HttpApiMiddleware.Service<Authorization>()(
  "@tenure/core/Api/Authorization",
  { requiredForClient: true, security: { bearer: HttpApiSecurity.bearer } },
) {
  /** Lets a client send the given token with every request. */
  static readonly layerClient = (
    token: Redacted.Redacted,
  ): Layer.Layer<HttpApiMiddleware.ForClient<Authorization>> =>
    HttpApiMiddleware.layerClient(this, ({ next, request }) =>
      next(HttpClientRequest.bearerToken(request, token)),
    )
}

class MembershipsGroup extends HttpApiGroup.make("memberships")
  .add(
    HttpApiEndpoint.patch("extend", "/:project_id/memberships/:user_id/extend", {
      params: { project_id: projectId, user_id: userId },
      payload: extension,
      success: extended,
      error: [...common, membershipNotFound, neitherFormat, invalid],
    }),
    HttpApiEndpoint.patch("extendAll", "/:project_id/memberships/extend", {
      params: { project_id: projectId },
      payload: extension,
      success: extended,
      error: [...common, projectNotFound, neitherFormat, invalid],
    }),
  )
  .prefix("/v2/projects")
  .middleware(Authorization) {}

class WebhooksGroup extends HttpApiGroup.make("webhooks")
  .add(
    HttpApiEndpoint.post("create", "/:project_id/integrations/webhooks", {
      params: { project_id: projectId },
      payload: Schema.Struct({ url: Schema.String }),
      success: success(webhook),
      error: [...common, projectNotFound, invalid],
    }),
    HttpApiEndpoint.get("list", "/:project_id/integrations/webhooks", {
      params: { project_id: projectId },
      success: counted(Schema.Array(webhook)),
      error: [...common, projectNotFound],
    }),
    HttpApiEndpoint.make("DELETE")("delete", "/:project_id/integrations/webhooks/:webhook_id", {
      params: { project_id: projectId, webhook_id: webhookId },
      success: success(Schema.Null),
      error: [...common, webhookNotFound],
    }),
  )
  .prefix("/v2/projects")
  .middleware(Authorization) {}

/**
 * The API.
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
