/** The service for memberships, which hosts and the API call. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { InvalidInput } from "../base/InvalidInput.ts"
import type * as Once from "../base/Once.ts"
import type * as Origin from "../base/Origin.ts"
import type { ProjectNotFound } from "../base/Project.ts"
import * as Setting from "../base/Setting.ts"
import type { StoreUnavailable } from "../base/StoreUnavailable.ts"
import * as Bulk from "./Bulk.ts"
import * as Changes from "./Changes.ts"
import type * as EndDate from "./EndDate.ts"
import type { EndingPage } from "./EndingPage.ts"
import type * as Import from "./Import.ts"
import type {
  AuditRow,
  CurrentMembership,
  EndDateConflict,
  Membership,
  MembershipNotFound,
  MembershipState,
  ProjectSummary,
  Shown,
} from "./Membership.ts"
import { MembershipStore } from "./MembershipStore.ts"
import * as Reading from "./Reading.ts"

/** A user of a project. */
export interface Member {
  readonly projectId: string
  readonly userId: string
}

/** What every change of memberships takes. */
export interface Changing {
  /** Why: 1 to 500 characters, which the audit trail and the event of the change keep. */
  readonly reason?: string | undefined
  /**
   * Makes the change once, however often the call is repeated within 24 hours: 1 to 255 visible
   * characters of ASCII. Each `keyId` of an origin has idempotency keys of its own.
   */
  readonly idempotencyKey?: Once.Input | undefined
}

/** How something is extended. */
export interface Extending extends Changing {
  /** The new end date, in the future. */
  readonly endDate: EndDate.Input
  /**
   * If true, nothing is changed, recorded or published. The result, or the failure, is that of the same
   * call without it.
   */
  readonly dryRun?: boolean | undefined
}

/** How a membership is extended. */
export interface ExtendingMember extends Member, Extending {
  readonly expectedEndDate?: EndDate.Input | undefined
  readonly mode?: Bulk.Mode | undefined
}

/** The options of memberships. */
export const options = Setting.struct({
  /**
   * Whether a bulk extension that does not say so itself also sets memberships that end later than the new
   * date (`"set"`), or leaves those as they are (`"neverShorten"`). Default: `"set"`.
   */
  bulk: Setting.withDefault(Setting.oneOf(Bulk.modes), "set"),
})

/** The options as a host passes them. */
export interface Options extends Setting.Input<typeof options> {}

/** The options as the library uses them. */
export interface Settings extends Setting.Output<typeof options> {}

/** The result of a bulk extension. */
export interface BulkExtended {
  readonly endDate: EndDate.EndDate
  /** The number of memberships of the project, with those that were left as they are. */
  readonly total: number
  /** Of a dry run, the number of memberships that would end earlier than they do now. */
  readonly wouldShorten?: number
}

type Failure = InvalidInput | StoreUnavailable

type ChangeFailure = Failure | Once.Conflict

/**
 * Grants, imports, extends, ends and finds memberships. Every method fails with `InvalidInput` if an argument
 * is invalid and with `StoreUnavailable` if the store does not answer.
 *
 * The methods that change memberships take a reason, and an origin: who asked for the change and in
 * which request. The audit trail keeps both. They fail with `IdempotencyMismatch` if the idempotency key
 * was used for another call, and with `IdempotencyInProgress` if the first call with it takes too long.
 *
 * @example
 * ```ts
 * import * as Effect from "effect/Effect"
 * import { Memberships } from "tenure/Memberships"
 *
 * const renew = Effect.gen(function* () {
 *   const memberships = yield* Memberships
 *   const member = { projectId: "p1", userId: "1001" }
 *   const origin = { keyId: "billing", requestId: "invoice-2026-117" }
 *   yield* memberships.grant({ ...member, endDate: new Date("2027-01-01") }, origin)
 *   const reason = "prepaid for two years"
 *   yield* memberships.extend({ ...member, endDate: "2028-01-01T00:00:00.000Z", reason }, origin)
 *   return yield* memberships.history(member)
 * })
 * ```
 */
export class Memberships extends Context.Service<
  Memberships,
  {
    /**
     * Creates a project. Does nothing if it exists.
     *
     * @param creation.idempotencyKey - as of a change of memberships
     */
    readonly createProject: (
      projectId: string,
      origin?: Origin.Input,
      creation?: Pick<Changing, "idempotencyKey">,
    ) => Effect.Effect<void, ChangeFailure>

    /**
     * Deletes a project with all that belongs to it: memberships, webhooks, events and deliveries, and its
     * audit trail, of which one row stays that says so (`history` with `projectId: null`). API keys do
     * not open it any more, even if it is created again: at once in this process, and within
     * `keyCacheLife` in others that share its store. Attempts in flight are aborted, and none starts
     * afterwards. Fails with `ProjectNotFound`.
     *
     * @param deletion.idempotencyKey - as of a change of memberships
     */
    readonly deleteProject: (
      projectId: string,
      origin?: Origin.Input,
      deletion?: Pick<Changing, "idempotencyKey">,
    ) => Effect.Effect<void, ChangeFailure | ProjectNotFound>

    /** Returns a project. Fails with `ProjectNotFound`. */
    readonly findProject: (
      projectId: string,
    ) => Effect.Effect<ProjectSummary, Failure | ProjectNotFound>

    /**
     * Returns projects in the order of their ids, compared as text.
     *
     * @param page.within - returns only projects with these ids; `"all"` by default
     * @param page.after - returns the projects after this id; from the first one by default
     * @param page.limit - the most projects to return, 1 to 10,000; 100 by default
     */
    readonly listProjects: (page?: {
      readonly within?: ReadonlySet<string> | "all" | undefined
      readonly after?: string | undefined
      readonly limit?: number | undefined
    }) => Effect.Effect<ReadonlyArray<ProjectSummary>, Failure>

    /**
     * Creates a membership, or sets the end date of an existing one. The end date may be in the past.
     * Fails with `InvalidEndDate` or `ProjectNotFound`.
     */
    readonly grant: (
      membership: Member & Changing & { readonly endDate: EndDate.Input },
      origin?: Origin.Input,
    ) => Effect.Effect<Membership, ChangeFailure | EndDate.InvalidEndDate | ProjectNotFound>

    /**
     * Creates up to 10,000 memberships of different users, or sets the end dates of those that exist:
     * all of them in one step, or none. End dates may be in the past. One event tells of all of them.
     * Fails with `ProjectNotFound`.
     */
    readonly import: (
      project: Changing & {
        readonly projectId: string
        readonly memberships: ReadonlyArray<Import.Input>
      },
      origin?: Origin.Input,
    ) => Effect.Effect<void, ChangeFailure | ProjectNotFound>

    /**
     * Sets the end date of a membership, which may have expired, to a future date. Returns the membership with
     * the end date that it has afterwards. Fails with `InvalidEndDate`, `EndDateNotInFuture`, `MembershipNotFound` or
     * `EndDateConflict`.
     *
     * @param membership.mode - whether a membership that ends later is set, too (`"set"`, the default), or left
     *   as it is (`"neverShorten"`): then nothing is recorded or published
     * @param membership.expectedEndDate - if given, only a membership that has this end date is changed:
     *   of several callers that read a date and set another, one succeeds
     */
    readonly extend: (
      membership: ExtendingMember,
      origin?: Origin.Input,
    ) => Effect.Effect<
      Membership,
      | ChangeFailure
      | EndDate.InvalidEndDate
      | EndDate.EndDateNotInFuture
      | MembershipNotFound
      | EndDateConflict
    >

    /**
     * Sets the end date of all memberships of a project to a future date. Fails with
     * `InvalidEndDate`, `EndDateNotInFuture` or `ProjectNotFound`. A dry run reads all memberships of
     * the project.
     *
     * @param project.mode - whether memberships that end later are set, too (`"set"`), or left as they are
     *   (`"neverShorten"`); the option `bulk` by default
     */
    readonly extendAll: (
      project: Extending & { readonly projectId: string; readonly mode?: Bulk.Mode | undefined },
      origin?: Origin.Input,
    ) => Effect.Effect<
      BulkExtended,
      ChangeFailure | EndDate.InvalidEndDate | EndDate.EndDateNotInFuture | ProjectNotFound
    >

    /** Removes a membership. Fails with `MembershipNotFound`. */
    readonly end: (
      member: Member & Changing,
      origin?: Origin.Input,
    ) => Effect.Effect<void, ChangeFailure | MembershipNotFound>

    /**
     * Erases a person: ends the membership, if there is one, and removes the user id from the audit trail and
     * from events, also from those that are still to be delivered; with it, the reasons of these changes,
     * and what receivers have responded. A row in the trail says that somebody was erased. Afterwards the
     * user has no history. What was sent to webhooks is out of reach. The event `membership.ended` has
     * `null` in place of the user id: to tell receivers who has left, end the membership first.
     *
     * In events, it removes each field `user_id` that is this user, also of those that the host has published.
     * Works for users whose membership has ended, and succeeds if nothing is known of them. It reads all events
     * of the project that are kept, in several steps, and returns after the last one. If it fails, repeat it.
     *
     * Fails with `ProjectNotFound`.
     */
    readonly erase: (
      member: Member & Pick<Changing, "idempotencyKey">,
      origin?: Origin.Input,
    ) => Effect.Effect<void, ChangeFailure | ProjectNotFound>

    /** Returns a membership. Fails with `MembershipNotFound`. */
    readonly find: (
      member: Member,
    ) => Effect.Effect<CurrentMembership, Failure | MembershipNotFound>

    /**
     * Returns whether a user has a membership that has not expired: `false` also if there is no membership,
     * or no project. Finds it by its key, whatever the size of the project.
     */
    readonly isActive: (member: Member) => Effect.Effect<boolean, Failure>

    /**
     * Returns memberships of a project in the order of their user ids, compared as text. Fails with
     * `ProjectNotFound`.
     *
     * @param page.userIds - returns only the memberships of these users, at most 1,000; it finds them by
     *   their keys
     * @param page.after - returns the memberships after this user id; from the first one by default
     * @param page.limit - the most memberships to return, 1 to 10,000; 100 by default
     * @param page.state - returns only memberships in this state
     */
    readonly list: (page: {
      readonly projectId: string
      readonly userIds?: ReadonlyArray<string> | undefined
      readonly state?: MembershipState | undefined
      readonly after?: string | undefined
      readonly limit?: number | undefined
    }) => Effect.Effect<ReadonlyArray<CurrentMembership>, Failure | ProjectNotFound>

    /**
     * Returns the active memberships of a project that end before an instant, soonest first. Fails with
     * `InvalidEndDate` or `ProjectNotFound`.
     *
     * To have all of them, ask for pages until `next` is `undefined`: a page may have fewer memberships than
     * `limit`, or none. If nobody changes a membership meanwhile, it is on one page.
     *
     * @param page.before - the instant
     * @param page.after - `next` of the page before; from the first one by default
     * @param page.limit - the most memberships to return, 1 to 10,000; 100 by default
     */
    readonly listEnding: (page: {
      readonly projectId: string
      readonly before: EndDate.Input
      readonly after?: string | undefined
      readonly limit?: number | undefined
    }) => Effect.Effect<
      EndingPage<CurrentMembership>,
      Failure | EndDate.InvalidEndDate | ProjectNotFound
    >

    /**
     * Adds a row to the audit trail that says who was shown the secret of a webhook or the data of an event,
     * as the API does. For hosts that show them to people. Fails with `ProjectNotFound`.
     */
    readonly recordShown: (
      shown: Shown & { readonly projectId: string },
      origin?: Origin.Input,
    ) => Effect.Effect<void, Failure | ProjectNotFound>

    /**
     * Returns the newest rows of the audit trail, newest first. Fails with `ProjectNotFound`.
     *
     * @param page.projectId - the project; `null` for what belongs to no project: API keys, and projects
     *   that were created or deleted
     * @param page.userId - returns only changes of this user's membership, with the bulk extensions that
     *   applied to it
     * @param page.after - the `cursor` of a row: returns only rows older than this one
     * @param page.limit - the most rows to return, 1 to 10,000; 100 by default
     */
    readonly history: (page: {
      readonly projectId: string | null
      readonly userId?: string | undefined
      readonly after?: string | undefined
      readonly limit?: number | undefined
    }) => Effect.Effect<ReadonlyArray<AuditRow>, Failure | ProjectNotFound>
  }
>()("@tenure/core/Memberships") {
  static readonly layer = (
    settings: Settings = Setting.readSync(options),
  ): Layer.Layer<Memberships, never, MembershipStore> => Layer.effect(Memberships, make(settings))
}

const make = Effect.fnUntraced(function* (settings: Settings) {
  const changes = yield* Changes.make(settings)
  return Memberships.of({ ...changes, ...Reading.make(yield* MembershipStore) })
})
