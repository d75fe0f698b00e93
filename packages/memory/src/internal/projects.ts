/** What is kept of projects: their members, their webhooks and their audit trail. */

import type { EndDate } from "@tenure/core/EndDate"
import type { AuditRow, Membership, UserId } from "@tenure/core/Membership"
import type { ProjectId } from "@tenure/core/Project"
import type { Webhook, WebhookId } from "@tenure/core/Webhook"
import * as Ring from "./Ring.ts"

/** A bulk extension holds for every member whose own date was set before it. */
interface Dated {
  readonly endDate: EndDate
  /** The order of changes. */
  readonly order: number
}

/** The members of a project. */
export interface Members {
  readonly size: () => number
  /** The end date that holds for a user. */
  readonly get: (userId: UserId) => EndDate | undefined
  readonly set: (userId: UserId, endDate: EndDate) => void
  /** Sets the end date of all, in constant time. */
  readonly setAll: (endDate: EndDate) => void
  readonly delete: (userId: UserId) => void
  /** All user ids in order. */
  readonly sorted: () => ReadonlyArray<UserId>
}

/** Makes an empty set of members. */
const makeMembers = (): Members => {
  const own = new Map<UserId, Dated>()
  let bulk: Dated | undefined
  let changes = 0
  let sorted: ReadonlyArray<UserId> | undefined

  const dated = (endDate: EndDate): Dated => ({ endDate, order: ++changes })

  return {
    size: () => own.size,
    get: (userId) => {
      const date = own.get(userId)
      const isOverridden = date !== undefined && bulk !== undefined && bulk.order > date.order
      return isOverridden ? bulk?.endDate : date?.endDate
    },
    set: (userId, endDate) => {
      if (!own.has(userId)) sorted = undefined
      own.set(userId, dated(endDate))
    },
    setAll: (endDate) => {
      bulk = dated(endDate)
    },
    delete: (userId) => {
      own.delete(userId)
      sorted = undefined
    },
    sorted: () => {
      sorted ??= [...own.keys()].toSorted()
      return sorted
    },
  }
}

/** A project. */
export interface Project {
  readonly id: ProjectId
  readonly members: Members
  readonly webhooks: Map<WebhookId, Webhook>
  readonly history: Ring.Ring<AuditRow>
}

/**
 * Makes a project.
 *
 * @param kept - how many rows of its audit trail are kept
 */
export const makeProject = (id: ProjectId, kept: number): Project => ({
  id,
  members: makeMembers(),
  webhooks: new Map(),
  history: Ring.make(kept),
})

/** The membership of a user, if there is one. */
export const membershipOf = ({ id, members }: Project, userId: UserId): Membership | undefined => {
  const endDate = members.get(userId)
  return endDate === undefined ? undefined : { projectId: id, userId, endDate }
}
