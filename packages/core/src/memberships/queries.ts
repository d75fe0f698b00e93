/** The reading acts on memberships and projects. */

import * as Effect from "effect/Effect"
import type { ChangeContext } from "../base/change-context.ts"
import { InvalidInput } from "../base/errors.ts"
import type { ofProject } from "../base/input.ts"
import type { Decoded, HostInputOf } from "../base/operation-input.ts"
import { currentUnixMillis } from "../base/time.ts"
import { findBulkChange } from "./bulk-extensions.ts"
import { type BulkMode, endDateNotInFuture } from "./end-date.ts"
import { readDays } from "./ends.ts"
import type { endsCount } from "./extension-inputs.ts"
import type {
  disclosure,
  endingPage,
  historyPage,
  historySearch,
  membershipsPage,
  ofMember,
  possibleMember,
  projectsPage,
} from "./inputs.ts"
import { currentMembership, stateAt } from "./membership.ts"
import type { MembershipStore } from "./store.ts"

/** Selects a page from the project list. */
export interface ProjectsPage extends HostInputOf<typeof projectsPage> {}

/** Selects a page from a project's memberships. */
export interface MembershipsPage extends HostInputOf<typeof membershipsPage> {}

/** Selects a page from the ending list. */
export interface EndingQuery extends HostInputOf<typeof endingPage> {}

/** The days to count. */
export interface CountingEnds extends HostInputOf<typeof endsCount> {}

/** A disclosure in a project. */
export interface DisclosureIn extends HostInputOf<typeof disclosure> {}

/** Selects a page from the audit trail. */
export interface HistoryPage extends HostInputOf<typeof historyPage> {}

/** Selects a page from a search in the audit trail. */
export interface HistorySearch extends HostInputOf<typeof historySearch> {}

const untilNotAfterSince = new InvalidInput({ field: "until", problem: "must be after since" })

const notBoth = new InvalidInput({
  field: "prefix",
  problem: "cannot be combined with userIds",
})

/** Makes the reading acts on a store. */
export const makeMembershipQueries = (
  store: MembershipStore["Service"],
  { bulk: defaultMode }: { readonly bulk: BulkMode },
) => ({
  findProject: ({ projectId }: Decoded<typeof ofProject>) => store.findProject(projectId),

  listProjects: (page: Decoded<typeof projectsPage>) => store.listProjects(page),

  find: ({ projectId, userId }: Decoded<typeof ofMember>) =>
    Effect.flatMap(store.find(projectId, userId), (membership) =>
      Effect.map(currentUnixMillis, (at) => currentMembership(membership, at)),
    ),

  isActive: Effect.fnUntraced(function* ({ projectId, userId }: Decoded<typeof possibleMember>) {
    if (projectId === undefined || userId === undefined) return false
    const found = store.find(projectId, userId)
    const membership = yield* Effect.catchTag(found, "MembershipNotFound", () => Effect.undefined)
    return membership !== undefined && stateAt(membership, yield* currentUnixMillis) === "active"
  }),

  list: Effect.fnUntraced(function* (page: Decoded<typeof membershipsPage>) {
    const { projectId, state, ...others } = page
    if (page.prefix !== undefined && page.userIds !== undefined) return yield* notBoth
    const at = yield* currentUnixMillis
    const memberships = yield* store.list(projectId, { ...others, only: state && { state, at } })
    return memberships.map((membership) => currentMembership(membership, at))
  }),

  listEnding: Effect.fnUntraced(function* ({ projectId, ...page }: Decoded<typeof endingPage>) {
    const { memberships, next } = yield* store.listEnding(projectId, page)
    const at = yield* currentUnixMillis
    // The store lists only active ones, by its clock. By another one, some may have expired.
    const listed = memberships.map((one) => ({
      ...currentMembership(one, at),
      state: "active" as const,
    }))
    return { memberships: listed, next }
  }),

  countEnds: Effect.fnUntraced(function* (counting: Decoded<typeof endsCount>) {
    const { extension, projectId } = counting
    const days = yield* readDays(counting)
    const now = yield* currentUnixMillis
    const change =
      extension && (yield* findBulkChange({ store }, projectId, extension, defaultMode))
    if (change !== undefined && change.mode !== "extendBy" && change.endDate <= now) {
      return yield* endDateNotInFuture
    }
    return yield* store.countEnds(projectId, { days, change })
  }),

  recordShown: (
    { action, projectId, subject }: Decoded<typeof disclosure>,
    context: ChangeContext,
  ) => store.recordShown(projectId, { action, subject }, context),

  history: ({ projectId, ...page }: Decoded<typeof historyPage>) => store.history(projectId, page),

  searchHistory: Effect.fnUntraced(function* (search: Decoded<typeof historySearch>) {
    const { projectId, ...page } = search
    const { since = -Infinity, until = Infinity } = page
    return until <= since ? yield* untilNotAfterSince : yield* store.searchHistory(projectId, page)
  }),
})
