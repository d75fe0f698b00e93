/** Memberships: a user's belonging to a project until an end date. */

import type { Branded } from "effect/Brand"
import * as Data from "effect/Data"
import type { EndDate } from "./EndDate.ts"
import { refined } from "./internal/refined.ts"
import type { Origin } from "./Origin.ts"
import type { ProjectId } from "./Project.ts"

/** Identifier of a user: 1 to 64 decimal digits, compared as text (`7` and `07` are two users). */
export type UserId = Branded<string, "@tenure/core/UserId">

const pattern = /^[0-9]{1,64}$/

/** Brands a text as a user id. Throws where it is none. */
export const UserId = refined<string, UserId>("user id", (id) => pattern.test(id))

/** A user's membership in a project. It is expired once its end date has passed. */
export interface Membership {
  readonly projectId: ProjectId
  readonly userId: UserId
  readonly endDate: EndDate
}

/** The user has no membership in the project. */
export class MembershipNotFound extends Data.TaggedError("MembershipNotFound")<{
  readonly projectId: string
  readonly userId: string
}> {
  override get message(): string {
    return `The user "${this.userId}" has no membership in the project "${this.projectId}".`
  }
}

/** What happened to memberships, as kept in the audit trail. */
export type Action = "granted" | "extended" | "bulk_extended" | "ended"

/** One row of the audit trail: who changed what, in which request, from and to which end date. */
export interface AuditRow {
  readonly projectId: ProjectId
  /** `undefined` for a change of all memberships of the project. */
  readonly userId: UserId | undefined
  readonly action: Action
  readonly origin: Origin
  /** The end date before; `undefined` if there was none, or there were many. */
  readonly from: EndDate | undefined
  /** The end date after; `undefined` if the membership was ended. */
  readonly to: EndDate | undefined
  /** Milliseconds since the epoch. */
  readonly at: number
}
