import { type ApiRequest, brokenOff, emptyBody } from "@tenure/core/ApiRequest"
import type { Principal } from "@tenure/core/Identity"
import * as Route from "@tenure/core/Route"
import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import { ApiKeyId } from "../../src/base/ApiKeyId.ts"
import * as Outcome from "../../src/http/Outcome.ts"
import { route } from "../../src/http/Routing.ts"

const principal: Principal = {
  keyId: ApiKeyId("a key"),
  role: "client",
  projects: new Set(["p1"]),
  isReadOnly: false,
}
const known = Result.succeed(principal)
const unknown = Outcome.fail({ _tag: "Unauthorized" })

const webhooks: ApiRequest = {
  method: "POST",
  path: "/v2/projects/p1/integrations/webhooks",
  headers: {},
  body: emptyBody,
  remoteAddress: undefined,
}

const { match } = Route.make("all")

const routed = (
  parts: Partial<ApiRequest>,
  sender: Outcome.Outcome<Principal> = known,
  found: Route.Match | undefined = match(parts.path ?? webhooks.path, ""),
) => route({ ...webhooks, ...parts }, "a request", sender, found)

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
    const unreadable = { body: brokenOff, path, method }
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
