import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import { ApiKeyId } from "../../src/base/values.ts"
import { routeRequest } from "../../src/http/operation.ts"
import { type ApiRequest, abortedBody, emptyBody } from "../../src/http/request.ts"
import { type Outcome, failOutcome } from "../../src/http/response.ts"
import { type RouteMatch, makeRoutes } from "../../src/http/routes.ts"
import { TokenDigest } from "../../src/keys/api-key.ts"
import { type Principal, anonymous } from "../../src/keys/identity.ts"

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

const senderOf = (parts: Partial<Principal>) => Result.succeed({ ...principal, ...parts })

describe("a sender", () => {
  const publish = { path: "/v2/projects/p1/events" }
  const issueTicket = { path: "/v2/realtime/tickets" }
  const unauthorized = { _tag: "Unauthorized" }
  const forbidden = { _tag: "Forbidden" }

  it("may call what its role may, and what smaller roles may", () => {
    expect(errorOf(publish)).toEqual(forbidden)
    for (const role of ["operator", "admin"] as const) {
      expect(routed(publish, senderOf({ role }))).toMatchObject({
        success: { operation: "events.publish" },
      })
    }
  })

  it("who may change nothing may read, and ask for a ticket", () => {
    const reader = senderOf({ role: "admin", isReadOnly: true })
    expect(errorOf({}, reader)).toEqual(forbidden)
    expect(errorOf({ method: "GET" }, reader)).toBeUndefined()
    expect(errorOf(issueTicket, reader)).toBeUndefined()
  })

  it("without a key may read the document, and nothing else", () => {
    const document = { method: "GET", path: "/v2/openapi.json" }
    expect(routed(document, unknown)).toMatchObject({
      success: { operation: "docs.document", principal: anonymous },
    })
    expect(errorOf({ ...document, method: "POST" }, unknown)).toEqual(unauthorized)
    expect(errorOf(publish, unknown)).toEqual(unauthorized)
  })

  it("with a ticket may follow the feed, and read the document", () => {
    const ticket = {
      digest: TokenDigest("a digest"),
      keyId: principal.keyId,
      keyDigest: undefined,
      projects: "all",
    } as const
    const holder = senderOf({ role: "admin", ticket })
    expect(routed({ ...publish, method: "GET" }, holder)).toMatchObject({
      success: { operation: "events.list" },
    })
    expect(errorOf({ method: "GET", path: "/v2/docs" }, holder)).toBeUndefined()
    expect(errorOf(publish, holder)).toEqual(unauthorized)
    expect(errorOf({ ...publish, method: "PUT" }, holder)).toEqual(unauthorized)
  })

  it("who may call nothing at a path does not learn its methods", () => {
    const keys = { method: "PUT", path: "/v2/api-keys" }
    expect(errorOf(keys)).toEqual(forbidden)
    expect(errorOf(keys, senderOf({ role: "admin", isReadOnly: true }))).toEqual({
      _tag: "MethodNotAllowed",
      allow: ["GET", "POST"],
    })
  })
})
