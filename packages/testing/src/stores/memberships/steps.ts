/** Steps that tests of a `MembershipStore` share. */

import type { UserId } from "@tenure/core/Membership"
import { MembershipStore } from "@tenure/core/MembershipStore"
import { ProjectId } from "@tenure/core/Project"
import * as Effect from "effect/Effect"
import { change, in2027, in2029, p1, p2, u1, u2, occasion } from "../../support/fixtures.ts"

/** A project that does not exist. */
export const nowhere = ProjectId("nowhere")

/** A store with two projects. The first has two members. */
export const prepared = Effect.gen(function* () {
  const store = yield* MembershipStore
  yield* store.createProject(p1, occasion)
  yield* store.createProject(p2, occasion)
  yield* store.grant({ ...change(p1), userId: u1, endDate: in2027 })
  yield* store.grant({ ...change(p1), userId: u2, endDate: in2029 })
  return store
})

/** Returns the end date of a member. */
export const endDateOf = Effect.fnUntraced(function* (userId: UserId, projectId = p1) {
  const store = yield* MembershipStore
  return (yield* store.find(projectId, userId)).endDate
})
