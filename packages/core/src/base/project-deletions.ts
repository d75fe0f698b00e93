/** Tells this process's services about deleted projects, so that they drop their data about them. */

import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import type { ProjectId } from "./values.ts"

type Listener = (projectId: ProjectId) => void

/** Project deletions by this process. */
export interface ProjectDeletions {
  /** Calls a function with each project deleted from now on. */
  readonly listen: (listener: Listener) => void
  /** Tells all listeners about a project that was deleted, or may have been. */
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

/** By default, nobody listens. */
export const ProjectDeletions = Context.Reference<ProjectDeletions>(
  "@tenure/core/ProjectDeletions",
  { defaultValue: () => ({ listen: () => {}, report: () => {} }) },
)

/** Lets services listen to each other. */
export const projectDeletionsLayer: Layer.Layer<never> = Layer.sync(ProjectDeletions, make)
