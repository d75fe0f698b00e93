/** Tells services in this process which projects were deleted: what they know about them is over. */

import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import type { ProjectId } from "./values.ts"

type Listener = (projectId: ProjectId) => void

/** The deletions of projects by this process. */
export interface ProjectDeletions {
  /** Calls a function with each project that is deleted from now on. */
  readonly listen: (listener: Listener) => void
  /** Tells all listeners of a project that was deleted, or may have been. */
  readonly report: (projectId: ProjectId) => void
}

const make = (): ProjectDeletions => {
  const listeners: Array<Listener> = []
  return {
    listen: (listener) => void listeners.push(listener),
    report: (projectId) => {
      for (const listener of listeners) listener(projectId)
    },
  }
}

/** The deletions of projects. By default, nobody listens. */
export const ProjectDeletions = Context.Reference<ProjectDeletions>(
  "@tenure/core/ProjectDeletions",
  { defaultValue: () => ({ listen: () => {}, report: () => {} }) },
)

/** Lets services listen to each other. */
export const projectDeletionsLayer: Layer.Layer<never> = Layer.sync(ProjectDeletions, make)
