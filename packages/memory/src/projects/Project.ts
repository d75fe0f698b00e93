/** A project: its members, its webhooks and its audit trail. */

import type { EndDate } from "@tenure/core/EndDate"
import type { Membership, ProjectSummary, UserId } from "@tenure/core/Membership"
import type { ProjectId } from "@tenure/core/Project"
import type { StoredWebhook, WebhookId } from "@tenure/core/Webhook"
import * as Members from "./Members.ts"
import type * as Trail from "./Trail.ts"

/** A project. */
export interface Project {
  readonly id: ProjectId
  readonly members: Members.Members
  readonly webhooks: Map<WebhookId, StoredWebhook>
  readonly history: Trail.Trail
  /** The end date of the last bulk extension. */
  lastBulkEndDate: EndDate | undefined
  /** When to look at the members again who have a date of a bulk extension; `undefined` for never. */
  alarm: number | undefined
}

/**
 * Makes a project.
 *
 * @param history - its audit trail, which is empty
 */
export const make = (id: ProjectId, history: Trail.Trail): Project => ({
  id,
  members: Members.make(),
  webhooks: new Map(),
  history,
  lastBulkEndDate: undefined,
  alarm: undefined,
})

/** Returns how much a project has. */
export const summaryOf = ({ id, lastBulkEndDate, members, webhooks }: Project): ProjectSummary => ({
  id,
  memberships: members.size(),
  webhooks: webhooks.size,
  lastBulkEndDate,
})

/** Returns the membership of a user, if there is one. */
export const membershipOf = ({ id, members }: Project, userId: UserId): Membership | undefined => {
  const endDate = members.get(userId)
  return endDate === undefined ? undefined : { projectId: id, userId, endDate }
}
