/** The five operations of the API: from a routed request to a result. */

import * as Effect from "effect/Effect"
import type { ApiError } from "../ApiError.ts"
import type { ApiRequest } from "../ApiRequest.ts"
import * as EndDate from "../EndDate.ts"
import type { Success } from "../Envelope.ts"
import type { Client } from "../Identity.ts"
import { Memberships } from "../Memberships.ts"
import { ProjectId } from "../Project.ts"
import type { Webhook } from "../Webhook.ts"
import { Webhooks } from "../Webhooks.ts"
import * as RequestBody from "./requestBody.ts"
import type { Operation, Route } from "./route.ts"

/** A request that has passed authentication and limits. */
export interface Call {
  readonly request: ApiRequest
  readonly requestId: string
  readonly client: Client
  readonly route: Route
}

type Perform = (call: Call) => Effect.Effect<Success, ApiError>

const fail = (error: ApiError): Effect.Effect<never, ApiError> => Effect.fail(error)

/** An id in the path, or the failure that its percent-encoding is none. */
const idOf = (segment: string): Effect.Effect<string, ApiError> => {
  try {
    return Effect.succeed(decodeURIComponent(segment))
  } catch {
    return fail({ _tag: "MalformedRequest", message: "The path is not percent-encoded correctly." })
  }
}

/** The project by its id, if it is open to the client. One that is not might as well not exist. */
const projectOf = ({ client }: Call, id: string): Effect.Effect<ProjectId, ApiError> =>
  ProjectId.is(id) && client.projects.has(id)
    ? Effect.succeed(id)
    : fail({ _tag: "ProjectNotFound" })

/** The end date of a body, in a spelling to be read, or the failure that it is none of either. */
const endDateOf = (body: RequestBody.JsonObject) => {
  const extend = RequestBody.field(body, "extend")
  return typeof extend === "string" || typeof extend === "number"
    ? Effect.succeed(extend)
    : Effect.fromResult(EndDate.decode(extend))
}

const originOf = ({ client, requestId }: Call) => ({ requestId, keyId: client.keyId })

const extended = (endDate: EndDate.EndDate, total: number, message: string): Success => ({
  _tag: "Success",
  total,
  message,
  data: { new_end_date: EndDate.format(endDate) },
})

const webhookData = ({ id, secret, url }: Webhook) => ({ url, id, secret })

/**
 * Makes the function that performs operations.
 *
 * @param maxBodyBytes - the longest request body that is read
 */
export const make = Effect.fnUntraced(function* (maxBodyBytes: number) {
  const memberships = yield* Memberships
  const webhooks = yield* Webhooks

  const bodyOf = ({ request }: Call) => Effect.fromResult(RequestBody.read(request, maxBodyBytes))

  const operations: Record<Operation, Perform> = {
    extend: Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call, yield* idOf(call.route.projectId))
      const userId = yield* idOf(call.route.id)
      const endDate = yield* endDateOf(yield* bodyOf(call))
      const membership = yield* memberships
        .extend({ projectId, userId, endDate }, originOf(call))
        // What is no user's id is nobody's.
        .pipe(Effect.catchTag("InvalidInput", () => fail({ _tag: "MembershipNotFound" })))
      return extended(membership.endDate, 1, "The membership was extended.")
    }),

    extendAll: Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call, yield* idOf(call.route.projectId))
      const endDate = yield* endDateOf(yield* bodyOf(call))
      const bulk = yield* memberships.extendAll({ projectId, endDate }, originOf(call))
      return extended(bulk.endDate, bulk.total, "All memberships of the project were extended.")
    }),

    createWebhook: Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call, yield* idOf(call.route.projectId))
      const body = yield* bodyOf(call)
      const webhook = yield* webhooks.create({ projectId, url: RequestBody.field(body, "url") })
      return { _tag: "Success", message: "The webhook was created.", data: webhookData(webhook) }
    }),

    listWebhooks: Effect.fnUntraced(function* (call) {
      const list = yield* webhooks.list(yield* projectOf(call, yield* idOf(call.route.projectId)))
      return {
        _tag: "Success",
        total: list.length,
        message: "The webhooks of the project.",
        data: list.map(webhookData),
      }
    }),

    deleteWebhook: Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call, yield* idOf(call.route.projectId))
      yield* webhooks.delete({ projectId, webhookId: yield* idOf(call.route.id) })
      return { _tag: "Success", message: "The webhook was deleted.", data: null }
    }),
  }

  const perform: Perform = (call) => {
    const { operations: allowed } = call.route
    const operation = Object.hasOwn(allowed, call.request.method)
      ? allowed[call.request.method]
      : undefined
    return operation === undefined
      ? fail({ _tag: "MethodNotAllowed", allow: Object.keys(allowed) })
      : operations[operation](call)
  }
  return perform
})
