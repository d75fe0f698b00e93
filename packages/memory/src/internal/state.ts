/** All that the stores share: a change in one of them touches the others' in the same step. */

import type { Event } from "@tenure/core/Event"
import { type ProjectId, ProjectNotFound } from "@tenure/core/Project"
import type { Webhook } from "@tenure/core/Webhook"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Deliveries from "./deliveries.ts"
import { makeProject, type Project } from "./projects.ts"

/** The state behind all ports. */
export interface State {
  readonly createProject: (projectId: ProjectId) => void
  readonly findProject: (projectId: ProjectId) => Project | undefined
  /** The project, or the failure that there is none. */
  readonly project: (projectId: ProjectId) => Effect.Effect<Project, ProjectNotFound>
  readonly deliveries: Deliveries.Deliveries
  /** Open when there may be deliveries to claim. */
  readonly changed: Latch.Latch
  /** Adds a delivery of the event for each webhook of its project that is not disabled. */
  readonly publish: (project: Project, event: Event) => void
  /** Disables a webhook that is enabled, and announces that to the others of its project. */
  readonly disable: (webhook: Webhook, announcement: Event, now: number) => void
}

const isWanted = ({ eventTypes }: Webhook, { type }: Event): boolean =>
  eventTypes === undefined || eventTypes.includes(type)

/**
 * Makes an empty state.
 *
 * @param kept - how many rows of each project's audit trail are kept, and how many deliveries that
 *   have ended, over all webhooks
 */
export const make = (kept: number): State => {
  const projects = new Map<ProjectId, Project>()
  const deliveries = Deliveries.make(kept)
  const changed = Latch.makeUnsafe()
  const publish: State["publish"] = ({ webhooks }, event) => {
    for (const webhook of webhooks.values()) {
      if (webhook.disabledAt !== undefined || !isWanted(webhook, event)) continue
      deliveries.add(event, webhook)
      changed.openUnsafe()
    }
  }

  return {
    deliveries,
    changed,
    createProject: (id) => {
      if (!projects.has(id)) projects.set(id, makeProject(id, kept))
    },
    findProject: (id) => projects.get(id),
    project: (projectId) => {
      const project = projects.get(projectId)
      return project === undefined
        ? Effect.fail(new ProjectNotFound({ projectId }))
        : Effect.succeed(project)
    },
    publish,
    disable: (webhook, announcement, now) => {
      const project = projects.get(webhook.projectId)
      const current = project?.webhooks.get(webhook.id)
      if (project === undefined || current === undefined || current.disabledAt !== undefined) return
      project.webhooks.set(webhook.id, { ...current, disabledAt: now })
      publish(project, announcement)
    },
  }
}
