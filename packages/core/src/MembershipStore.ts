/** The storage port for projects, memberships and their audit trail. */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { EndDate } from "./EndDate.ts"
import type { Event } from "./Event.ts"
import type { AuditRow, Membership, MembershipNotFound, UserId } from "./Membership.ts"
import type { Origin } from "./Origin.ts"
import type { ProjectId, ProjectNotFound } from "./Project.ts"
import type { StoreUnavailable } from "./StoreUnavailable.ts"

/** What every change carries besides itself. */
export interface Change {
  readonly projectId: ProjectId
  /** Who and which request, for the audit row. */
  readonly origin: Origin
  /** When, in milliseconds since the epoch. */
  readonly at: number
  /** What the project's webhooks are told. */
  readonly event: Event
}

/** A new end date for one user. */
export interface Grant extends Change {
  readonly userId: UserId
  readonly endDate: EndDate
}

/** A new end date for all. */
export interface BulkExtension extends Change {
  readonly endDate: EndDate
  /** Whether memberships that end later are set as well, or left as they are. */
  readonly mode: "set" | "neverShorten"
}

/** The end of one membership. */
export interface Ending extends Change {
  readonly userId: UserId
}

/**
 * Keeps projects, memberships and the audit trail.
 *
 * Every change is one step: the membership, its audit row, its event and a delivery of that event
 * to each of the project's webhooks are stored together or not at all. A change that fails leaves
 * nothing behind. A change that is repeated sets the same end dates, with an audit row and an event
 * of its own.
 *
 * A store whose storage does not answer fails with `StoreUnavailable` within a few seconds. That
 * holds for every port.
 */
export class MembershipStore extends Context.Service<
  MembershipStore,
  {
    /** Creates a project. Does nothing if it exists. */
    readonly createProject: (projectId: ProjectId) => Effect.Effect<void, StoreUnavailable>

    /** Creates a membership, or sets the end date of the one that exists. */
    readonly grant: (change: Grant) => Effect.Effect<void, ProjectNotFound | StoreUnavailable>

    /** Sets the end date of a membership, whether it has expired or not. */
    readonly extend: (change: Grant) => Effect.Effect<void, MembershipNotFound | StoreUnavailable>

    /** Sets the end date of all memberships of a project; gives the number that were set. */
    readonly extendAll: (
      change: BulkExtension,
    ) => Effect.Effect<number, ProjectNotFound | StoreUnavailable>

    /** Removes a membership. */
    readonly end: (change: Ending) => Effect.Effect<void, MembershipNotFound | StoreUnavailable>

    /** Reads a membership with the end date that holds now. */
    readonly find: (
      projectId: ProjectId,
      userId: UserId,
    ) => Effect.Effect<Membership, MembershipNotFound | StoreUnavailable>

    /** Reads up to `limit` memberships in the order of their user ids (by code unit), after `after`. */
    readonly list: (
      projectId: ProjectId,
      page: { readonly after: UserId | undefined; readonly limit: number },
    ) => Effect.Effect<ReadonlyArray<Membership>, ProjectNotFound | StoreUnavailable>

    /**
     * Reads the newest `limit` rows of a project's audit trail, newest first; with a user, those
     * that changed that user's membership (bulk changes are not repeated for each user).
     */
    readonly history: (
      projectId: ProjectId,
      page: { readonly userId: UserId | undefined; readonly limit: number },
    ) => Effect.Effect<ReadonlyArray<AuditRow>, ProjectNotFound | StoreUnavailable>
  }
>()("@tenure/core/MembershipStore") {}
