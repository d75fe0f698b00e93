import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import { ApiKeyId } from "../../src/base/values.ts"
import { routeRequest } from "../../src/http/operation.ts"
import { type ApiRequest, abortedBody, emptyBody } from "../../src/http/request.ts"
import { type Outcome, failOutcome } from "../../src/http/response.ts"
import { type RouteMatch, makeRoutes } from "../../src/http/routes.ts"
import type { Principal } from "../../src/keys/identity.ts"

const principal: Principal = {
  keyId: ApiKeyId("a key"),
  role: "client",
  projects: new Set(["p1"]),
  isReadOnly: false,
}
const known = Result.succeed(principal)
const unknown = failOutcome({ _tag: "Unauthorized" })

const webhooks: ApiRequest = {
  method: "POST",
  path: "/v2/projects/p1/integrations/webhooks",
  headers: {},
  body: emptyBody,
  remoteAddress: undefined,
}

const { match } = makeRoutes("all")

const routed = (
  parts: Partial<ApiRequest>,
  sender: Outcome<Principal> = known,
  found: RouteMatch | undefined = match(parts.path ?? webhooks.path, ""),
) => routeRequest({ ...webhooks, ...parts }, "a request", sender, found)

const errorOf = (...args: Parameters<typeof routed>) => {
  const outcome = routed(...args)
  return Result.isFailure(outcome) ? outcome.failure : undefined
}

describe("a request", () => {
  it("is routed to the operation of its method and path", () => {
    expect(routed({})).toMatchObject({
      success: {
        operation: "webhooks.create",
        requestId: "a request",
        principal,
        params: { project_id: "p1" },
      },
    })
    expect(routed({ method: "GET" })).toMatchObject({ success: { operation: "webhooks.list" } })
  })

  it("with several errors is answered with the first: unreadable, path, key, method", () => {
    const path = "/v2/nothing"
    const method = "PUT"
    const unreadable = { body: abortedBody, path, method }
    expect(errorOf(unreadable, unknown)).toMatchObject({ _tag: "MalformedRequest" })
    expect(errorOf({ path, method }, unknown)).toEqual({ _tag: "RouteNotFound" })
    expect(errorOf({ method }, unknown)).toEqual({ _tag: "Unauthorized" })
    expect(errorOf({ method })).toEqual({ _tag: "MethodNotAllowed", allow: ["GET", "POST"] })
  })

  it.each(["get", "constructor", "__proto__", ""])(
    "with the method %j is not allowed",
    (method) => {
      expect(errorOf({ method })).toMatchObject({ _tag: "MethodNotAllowed" })
    },
  )
})
