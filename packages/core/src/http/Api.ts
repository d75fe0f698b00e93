/**
 * The contract as an `HttpApi`, for the OpenAPI document and a typed client. `Handler` answers the
 * requests, without the cost of schemas. No other module of the library imports this one, so only
 * programs that use it load schemas.
 */

import * as HttpApi from "effect/http-api/HttpApi"
import * as OpenApi from "effect/http-api/OpenApi"
import { ApiKeys } from "./api/ApiKeys.ts"
import { Audit } from "./api/Audit.ts"
import { Docs } from "./api/Docs.ts"
import { complete } from "./api/Document.ts"
import { notifications } from "./api/Events.ts"
import { Identity } from "./api/Identity.ts"
import { Memberships } from "./api/Memberships.ts"
import { Projects } from "./api/Projects.ts"
import { Events } from "./api/PublishedEvents.ts"
import { Realtime } from "./api/Realtime.ts"
import { Status } from "./api/Status.ts"
import { Webhooks } from "./api/Webhooks.ts"
import type { Document } from "./docs/OpenApi.ts"

export { Authorization } from "./api/Authorization.ts"

/**
 * The API as a value, for a typed client.
 *
 * @example
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as HttpApiClient from "effect/http-api/HttpApiClient"
 * import * as FetchHttpClient from "effect/http/FetchHttpClient"
 * import * as Redacted from "effect/Redacted"
 * import * as Api from "tenure/Api"
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
  .add(Memberships, Projects, Webhooks, Events, Realtime, ApiKeys, Audit, Identity, Status, Docs)
  .annotate(
    HttpApi.AdditionalSchemas,
    notifications.map(({ schema }) => schema),
  )
  .annotateMerge(
    OpenApi.annotations({
      title: "Tenure",
      version: "2",
      description:
        "Sets the end dates of memberships, and notifies webhooks of every change. Every response has the same envelope; its `request_id` identifies the request. Objects may get further properties in the future.",
    }),
  ) {}

/** Makes the OpenAPI document of the API, for a server that has it at its root. */
export const openApi = (): Document => complete(OpenApi.fromApi(Api))
