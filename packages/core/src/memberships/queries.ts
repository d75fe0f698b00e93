/** The methods of the memberships service that read. */

import * as Effect from "effect/Effect"
import { type OriginInput, readChangeContext } from "../base/change-context.ts"
import { InvalidInput } from "../base/errors.ts"
import {
  readArgument,
  readBranded,
  readPageSize,
  readPossible,
  readProjectId,
} from "../base/input.ts"
import * as Setting from "../base/setting.ts"
import { currentUnixMillis } from "../base/time.ts"
import { ProjectId, copyOwn, identifierFormat, isIdentifier } from "../base/values.ts"
import { readBulkChange } from "./bulk-extensions.ts"
import { type BulkMode, type EndDateInput, readEndDate } from "./end-date.ts"
import { readDays } from "./ends.ts"
import type { ByDuration, ToDate } from "./extensions.ts"
import {
  AuditCursor,
  type Disclosure,
  type Member,
  type MembershipState,
  UserId,
  UserIdPrefix,
  disclosureActions,
  membershipStates,
  stateAt,
  withState,
  userIdsOption,
} from "./membership.ts"
import { EndingCursor, type MembershipStore } from "./store.ts"

/** Which projects are listed. */
export interface ProjectsPage {
  /** Lists only projects with these ids; `"all"` by default. */
  readonly within?: ReadonlySet<string> | "all" | undefined
  /** Lists the projects after this id; from the first one by default. */
  readonly after?: string | undefined
  /** The most projects to return, 1 to 10,000; 100 by default. */
  readonly limit?: number | undefined
}

/** Which memberships are listed. */
export interface MembershipsPage {
  /** The id of the project. */
  readonly projectId: string
  /** Lists only the memberships of these users, at most 1,000, and finds them by their keys. */
  readonly userIds?: ReadonlyArray<string> | undefined
  /** Lists only users whose ids start with this text. Not with `userIds`. */
  readonly prefix?: string | undefined
  /** Lists only memberships in this state. */
  readonly state?: MembershipState | undefined
  /** Lists the memberships after this user id; from the first one by default. */
  readonly after?: string | undefined
  /** The most memberships to return, 1 to 10,000; 100 by default. */
  readonly limit?: number | undefined
}

/** Which memberships that end soon are listed. */
export interface EndingQuery {
  /** The id of the project. */
  readonly projectId: string
  /** Lists memberships that end before this instant. */
  readonly before: EndDateInput
  /** `next` of the page before; from the first one by default. */
  readonly after?: string | undefined
  /** The most memberships to return, 1 to 10,000; 100 by default. */
  readonly limit?: number | undefined
}

/** Which days are counted. */
export interface CountingEnds {
  /** The id of the project. */
  readonly projectId: string
  /**
   * The first day in UTC, such as `"2027-01-31"`. Default: 59 days before `to`, or 14 days before today if `to` is
   * missing, too.
   */
  readonly from?: string | undefined
  /** The last day, less than 400 days later. Default: 59 days after `from`, or 45 days after today. */
  readonly to?: string | undefined
  /** Counts as if all memberships had been extended so. Nothing is changed. */
  readonly extension?: ToDate | ByDuration | undefined
}

/** A disclosure in a project. */
export interface DisclosureIn extends Disclosure {
  /** The id of the project. */
  readonly projectId: string
}

/** Which rows of the audit trail are listed. */
export interface HistoryPage {
  /** The project; `null` for API keys, and for projects that were created or deleted. */
  readonly projectId: string | null
  /** Lists only changes of this user's membership, with the bulk extensions that applied to it. */
  readonly userId?: string | undefined
  /** The `cursor` of a row: lists only rows older than this one. */
  readonly after?: string | undefined
  /** The most rows to return, 1 to 10,000; 100 by default. */
  readonly limit?: number | undefined
}

const membershipState = Setting.optional(Setting.oneOf(membershipStates))

const identifier = Setting.string(identifierFormat, isIdentifier)

const shownAction = Setting.oneOf(disclosureActions)

const notBoth = new InvalidInput({
  field: "prefix",
  problem: "cannot be combined with userIds",
})

/** Makes the methods that read from a store. */
export const makeMembershipQueries = (
  store: MembershipStore["Service"],
  { bulk: defaultMode }: { readonly bulk: BulkMode },
) => ({
  findProject: Effect.fnUntraced(function* (projectId: string) {
    return yield* store.findProject(yield* readProjectId(projectId))
  }),

  listProjects: Effect.fnUntraced(function* (page: ProjectsPage = {}) {
    const { after, limit = 100, within = "all" } = copyOwn(page)
    return yield* store.listProjects({
      within,
      after: after === undefined ? undefined : yield* readBranded("after", ProjectId, after),
      limit: yield* readPageSize(limit),
    })
  }),

  find: Effect.fnUntraced(function* (input: Member) {
    const member = copyOwn(input)
    const projectId = yield* readProjectId(member.projectId)
    const userId = yield* readBranded("userId", UserId, member.userId)
    const membership = yield* store.find(projectId, userId)
    return withState(membership, yield* currentUnixMillis)
  }),

  isActive: Effect.fnUntraced(function* (input: Member) {
    const member = copyOwn(input)
    const projectId = yield* readPossible("projectId", ProjectId, member.projectId)
    const userId = yield* readPossible("userId", UserId, member.userId)
    if (projectId === undefined || userId === undefined) return false
    const found = Effect.map(store.find(projectId, userId), ({ endDate }) => endDate)
    const endDate = yield* Effect.catchTag(found, "MembershipNotFound", () => Effect.undefined)
    return endDate !== undefined && stateAt({ endDate }, yield* currentUnixMillis) === "active"
  }),

  list: Effect.fnUntraced(function* (page: MembershipsPage) {
    const { after, limit = 100, prefix, projectId, state: asked, userIds } = copyOwn(page)
    if (prefix !== undefined && userIds !== undefined) return yield* notBoth
    const state = yield* readArgument("state", membershipState, asked)
    const at = yield* currentUnixMillis
    const memberships = yield* store.list(yield* readProjectId(projectId), {
      after: after === undefined ? undefined : yield* readBranded("after", UserId, after),
      limit: yield* readPageSize(limit),
      userIds: yield* readArgument("userIds", userIdsOption, userIds),
      prefix: prefix === undefined ? undefined : yield* readBranded("prefix", UserIdPrefix, prefix),
      only: state && { state, at },
    })
    return memberships.map((membership) => withState(membership, at))
  }),

  listEnding: Effect.fnUntraced(function* (page: EndingQuery) {
    const { after, before, limit = 100, projectId } = copyOwn(page)
    const { memberships, next } = yield* store.listEnding(yield* readProjectId(projectId), {
      before: yield* Effect.fromResult(readEndDate(before)),
      after: after === undefined ? undefined : yield* readBranded("after", EndingCursor, after),
      limit: yield* readPageSize(limit),
    })
    // The store lists only active ones, by its clock. By another one, some may have ended.
    return { memberships: memberships.map((one) => ({ ...one, state: "active" as const })), next }
  }),

  countEnds: Effect.fnUntraced(function* (input: CountingEnds) {
    const { extension, projectId, ...days } = copyOwn(input)
    const at = yield* currentUnixMillis
    return yield* store.countEnds(yield* readProjectId(projectId), {
      days: yield* readDays(days),
      change:
        extension === undefined
          ? undefined
          : yield* readBulkChange(
              { ...copyOwn(extension), projectId, dryRun: true },
              defaultMode,
              at,
            ),
    })
  }),

  recordShown: Effect.fnUntraced(function* (input: DisclosureIn, origin?: OriginInput) {
    const { action, projectId, subject } = copyOwn(input)
    const shown = {
      action: yield* readArgument("action", shownAction, action),
      subject: yield* readArgument("subject", identifier, subject),
    }
    const occasion = yield* readChangeContext(origin)
    yield* store.recordShown(yield* readProjectId(projectId), shown, occasion)
  }),

  history: Effect.fnUntraced(function* (page: HistoryPage) {
    const { after, limit = 100, projectId, userId } = copyOwn(page)
    // Explicit, so that a project that was left out by mistake does not have the rows of others.
    const id = projectId === null ? undefined : yield* readProjectId(projectId)
    return yield* store.history(id, {
      userId: userId === undefined ? undefined : yield* readBranded("userId", UserId, userId),
      after: after === undefined ? undefined : yield* readBranded("after", AuditCursor, after),
      limit: yield* readPageSize(limit),
    })
  }),
})
