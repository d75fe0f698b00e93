/** The reading side of the service for memberships. */

import * as Effect from "effect/Effect"
import * as Argument from "../base/Argument.ts"
import * as Identifier from "../base/Identifier.ts"
import * as Moment from "../base/Moment.ts"
import * as Origin from "../base/Origin.ts"
import { owned } from "../base/Own.ts"
import { ProjectId } from "../base/Project.ts"
import * as Setting from "../base/Setting.ts"
import * as EndDate from "./EndDate.ts"
import { EndingCursor } from "./EndingPage.ts"
import {
  AuditCursor,
  type CurrentMembership,
  type Membership,
  membershipStates,
  shownActions,
  stateAt,
  UserId,
} from "./Membership.ts"
import type { Memberships } from "./Memberships.ts"
import type { MembershipStore } from "./MembershipStore.ts"
import * as UserIds from "./UserIds.ts"

const membershipState = Setting.optional(Setting.oneOf(membershipStates))

const identifier = Setting.text(Identifier.expected, Identifier.isIdentifier)

const shownAction = Setting.oneOf(shownActions)

const current = (membership: Membership, at: number): CurrentMembership => ({
  ...membership,
  state: stateAt(membership, at),
})

/** The methods that read, and the record of what somebody was shown. */
type Reading = Pick<
  Memberships["Service"],
  | "findProject"
  | "listProjects"
  | "find"
  | "isActive"
  | "list"
  | "listEnding"
  | "recordShown"
  | "history"
>

/** Makes the methods that read from a store. */
export const make = (store: MembershipStore["Service"]): Reading => ({
  findProject: Effect.fnUntraced(function* (projectId) {
    return yield* store.findProject(yield* Argument.projectId(projectId))
  }),

  listProjects: Effect.fnUntraced(function* (page = {}) {
    const { after, limit = 100, within = "all" } = owned(page)
    return yield* store.listProjects({
      within,
      after: after === undefined ? undefined : yield* Argument.decode("after", ProjectId, after),
      limit: yield* Argument.pageSize(limit),
    })
  }),

  find: Effect.fnUntraced(function* (input) {
    const member = owned(input)
    const projectId = yield* Argument.projectId(member.projectId)
    const userId = yield* Argument.decode("userId", UserId, member.userId)
    const membership = yield* store.find(projectId, userId)
    return current(membership, yield* Moment.unix)
  }),

  isActive: Effect.fnUntraced(function* (input) {
    const member = owned(input)
    const projectId = yield* Argument.projectId(member.projectId)
    const userId = yield* Argument.decode("userId", UserId, member.userId)
    const found = Effect.map(store.find(projectId, userId), ({ endDate }) => endDate)
    const endDate = yield* Effect.catchTag(found, "MembershipNotFound", () => Effect.undefined)
    return endDate !== undefined && stateAt({ endDate }, yield* Moment.unix) === "active"
  }),

  list: Effect.fnUntraced(function* (page) {
    const { after, limit = 100, projectId, state: asked, userIds } = owned(page)
    const state = yield* Argument.read("state", membershipState, asked)
    const at = yield* Moment.unix
    const memberships = yield* store.list(yield* Argument.projectId(projectId), {
      after: after === undefined ? undefined : yield* Argument.decode("after", UserId, after),
      limit: yield* Argument.pageSize(limit),
      userIds: yield* Argument.read("userIds", UserIds.setting, userIds),
      only: state && { state, at },
    })
    return memberships.map((membership) => current(membership, at))
  }),

  listEnding: Effect.fnUntraced(function* (page) {
    const { after, before, limit = 100, projectId } = owned(page)
    const { memberships, next } = yield* store.listEnding(yield* Argument.projectId(projectId), {
      before: yield* Effect.fromResult(EndDate.fromInput(before)),
      after: after === undefined ? undefined : yield* Argument.decode("after", EndingCursor, after),
      limit: yield* Argument.pageSize(limit),
    })
    // The store lists only active ones, by its clock. By another one, some may have ended.
    return { memberships: memberships.map((one) => ({ ...one, state: "active" as const })), next }
  }),

  recordShown: Effect.fnUntraced(function* (input, origin) {
    const { action, projectId, subject } = owned(input)
    const shown = {
      action: yield* Argument.read("action", shownAction, action),
      subject: yield* Argument.read("subject", identifier, subject),
    }
    const occasion = yield* Origin.occasionOf(origin)
    yield* store.recordShown(yield* Argument.projectId(projectId), shown, occasion)
  }),

  history: Effect.fnUntraced(function* (page) {
    const { after, limit = 100, projectId, userId } = owned(page)
    // Explicit, so that a project that was left out by mistake does not have the rows of others.
    const id = projectId === null ? undefined : yield* Argument.projectId(projectId)
    return yield* store.history(id, {
      userId: userId === undefined ? undefined : yield* Argument.decode("userId", UserId, userId),
      after: after === undefined ? undefined : yield* Argument.decode("after", AuditCursor, after),
      limit: yield* Argument.pageSize(limit),
    })
  }),
})
