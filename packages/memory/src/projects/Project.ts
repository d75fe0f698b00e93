/** A project: its members, its webhooks and its audit trail. */

import type { AuditRow, Membership, UserId } from "@tenure/core/Membership"
import type { ProjectId } from "@tenure/core/Project"
import type { StoredWebhook, WebhookId } from "@tenure/core/Webhook"
import * as Ring from "../collections/Ring.ts"
import * as Members from "./Members.ts"

/** A project. */
export interface Project {
  readonly id: ProjectId
  readonly members: Members.Members
  readonly webhooks: Map<WebhookId, StoredWebhook>
  readonly history: Ring.Ring<AuditRow>
}

/**
 * Makes a project.
 *
 * @param history - how many rows of its audit trail are kept
 */
export const make = (id: ProjectId, history: number): Project => ({
  id,
  members: Members.make(),
  webhooks: new Map(),
  history: Ring.make(history),
})

/** Returns the membership of a user, if there is one. */
export const membershipOf = ({ id, members }: Project, userId: UserId): Membership | undefined => {
  const endDate = members.get(userId)
  return endDate === undefined ? undefined : { projectId: id, userId, endDate }
}
