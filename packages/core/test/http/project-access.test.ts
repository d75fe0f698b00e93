/** Which projects a request may use, and what its sender learns of others. */

import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ApiKeyId } from "../../src/base/values.ts"
import type { ApiError } from "../../src/http/errors.ts"
import {
  type RoutedCall,
  decodePathParam,
  isoOrNull,
  makeDisclosureAudit,
  mayUseProject,
  originOf,
  preferProjectNotFound,
  projectOf,
  requireAllProjects,
  sortedProjects,
} from "../../src/http/operation.ts"
import { emptyBody } from "../../src/http/request.ts"
import type { Operation, PathParams } from "../../src/http/routes.ts"
import type { Principal } from "../../src/keys/identity.ts"
import { Memberships } from "../../src/memberships/memberships.ts"

const traceparent = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"

const some: Principal = {
  keyId: ApiKeyId("a key"),
  role: "admin",
  projects: new Set(["p2", "p1"]),
  isReadOnly: false,
}
const all: Principal = { ...some, projects: "all" }

const callOf = (
  principal: Principal,
  params: Partial<PathParams> = {},
  operation: Operation = "memberships.get",
): RoutedCall => ({
  operation,
  request: {
    method: "GET",
    path: "/",
    headers: { traceparent },
    body: emptyBody,
    remoteAddress: undefined,
  },
  requestId: "a request",
  principal,
  params: {
    project_id: "p1",
    user_id: "1001",
    webhook_id: "",
    event_id: "",
    key_id: "",
    bulk_extension_id: "",
    ...params,
  },
})

const notFound = { _tag: "ProjectNotFound" } as const
const malformedPath = {
  _tag: "MalformedRequest",
  message: "The path is not percent-encoded correctly.",
} as const

describe("a sender", () => {
  it("may use its projects, or all of them", () => {
    expect(["p1", "p3"].map((id) => mayUseProject(some, id))).toEqual([true, false])
    expect(["p1", "p3"].map((id) => mayUseProject(all, id))).toEqual([true, true])
    expect([some, all].map(({ projects }) => sortedProjects(projects))).toEqual([
      ["p1", "p2"],
      "all",
    ])
  })

  it.effect("needs all projects for what tells of all of them", () =>
    Effect.gen(function* () {
      expect(yield* Effect.flip(requireAllProjects(callOf(some)))).toEqual({ _tag: "Forbidden" })
      yield* requireAllProjects(callOf(all))
    }),
  )
})

describe("the project of a path", () => {
  const idOf = (principal: Principal, project_id: string) =>
    Effect.map(Effect.result(projectOf(callOf(principal, { project_id }))), (result) =>
      result._tag === "Success" ? result.success : result.failure,
    )

  it.effect("is decoded", () =>
    Effect.gen(function* () {
      expect(yield* idOf(some, "%70%31")).toBe("p1")
      expect(yield* idOf(some, "%")).toEqual(malformedPath)
      expect(yield* decodePathParam("a%2Fb")).toBe("a/b")
      expect(yield* Effect.flip(decodePathParam("%zz"))).toEqual(malformedPath)
    }),
  )

  it.effect("is not found if it is that of another, or no project's id", () =>
    Effect.gen(function* () {
      expect(yield* idOf(some, "p3")).toEqual(notFound)
      expect(yield* idOf(all, "p3")).toBe("p3")
      expect(yield* idOf(all, "%2e%2e")).toEqual(notFound)
    }),
  )
})

describe("a project that does not exist", () => {
  /** The error of an operation that fails, and the projects that were looked up. */
  const judged = Effect.fnUntraced(function* (
    call: RoutedCall,
    error: ApiError,
    exists = false,
  ): Effect.fn.Return<readonly [unknown, ReadonlyArray<string>]> {
    const found: Array<string> = []
    const find = (id: string) => {
      found.push(id)
      return exists ? Effect.void : Effect.fail(notFound)
    }
    const operation = Effect.fail(error)
    return [yield* Effect.flip(preferProjectNotFound(call, operation, find)), found]
  })

  it.effect.each<ApiError>([
    { _tag: "MalformedRequest", message: "The request has no body." },
    { _tag: "MembershipNotFound" },
    { _tag: "PayloadTooLarge", limit: 1 },
    { _tag: "UnsupportedMediaType", message: "" },
    { _tag: "IdempotencyMismatch" },
  ])("counts before %j, for those who may use all", (error) =>
    Effect.gen(function* () {
      expect(yield* judged(callOf(all), error)).toEqual([notFound, ["p1"]])
      expect(yield* judged(callOf(all), error, true)).toEqual([error, ["p1"]])
      expect(yield* judged(callOf(some), error)).toEqual([error, []])
    }),
  )

  it.effect("is looked up only if an error may hide it", () =>
    Effect.gen(function* () {
      const missing = { _tag: "MembershipNotFound" } as const
      for (const error of [notFound, { _tag: "Forbidden" }, { _tag: "InternalError" }] as const) {
        expect(yield* judged(callOf(all), error)).toEqual([error, []])
      }
      expect(yield* judged(callOf(all, { project_id: "" }), missing)).toEqual([missing, []])
      const creating = callOf(all, {}, "projects.create")
      expect(yield* judged(creating, missing)).toEqual([missing, []])
      const never = () => Effect.fail(notFound)
      expect(yield* preferProjectNotFound(callOf(all), Effect.succeed(7), never)).toBe(7)
    }),
  )

  it.effect("does not count before a path that cannot be read", () =>
    Effect.gen(function* () {
      const missing = { _tag: "MembershipNotFound" } as const
      const call = callOf(all, { user_id: "%" })
      expect(yield* judged(call, missing)).toEqual([malformedPath, []])
    }),
  )
})

describe("the audit trail", () => {
  it("keeps the key, the request and its trace", () => {
    expect(originOf(callOf(some))).toEqual({ requestId: "a request", keyId: "a key", traceparent })
  })

  it.effect("keeps who was shown what is secret, in a project of theirs", () =>
    Effect.gen(function* () {
      const kept: Array<unknown> = []
      const recordShown = (...shown: ReadonlyArray<unknown>) =>
        Effect.sync(() => void kept.push(shown))
      const audit = yield* Effect.provide(
        makeDisclosureAudit,
        Layer.mock(Memberships)({ recordShown }),
      )
      yield* audit(callOf(some), "data_shown", "an event")
      const foreign = audit(callOf(some, { project_id: "p3" }), "data_shown", "an event")
      expect(yield* Effect.flip(foreign)).toEqual(notFound)
      const shown = { projectId: "p1", action: "data_shown", subject: "an event" }
      expect(kept).toEqual([[shown, originOf(callOf(some))]])
    }),
  )
})

it("a time is shown in the format of the API, and a missing one as null", () => {
  expect([0, undefined].map(isoOrNull)).toEqual(["1970-01-01T00:00:00.000Z", null])
})
