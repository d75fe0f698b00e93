/** Projects: what memberships, webhooks and API keys belong to. */

import type { Branded } from "effect/Brand"
import * as Data from "effect/Data"
import { refined } from "./internal/refined.ts"

/**
 * Identifier of a project: 1 to 255 characters, none of them a control character. It is neither `.`
 * nor `..`, which have a meaning of their own in a path.
 */
export type ProjectId = Branded<string, "@tenure/core/ProjectId">

// Control characters cannot be stored everywhere (PostgreSQL has no NUL) and garble logs; a lone
// surrogate has no UTF-8.
const pattern = /^(?!\.{1,2}$)[^\p{Cc}\p{Cs}]{1,255}$/u

/** Brands a text as a project id. Throws where it is none. */
export const ProjectId = refined<string, ProjectId>("project id", (id) => pattern.test(id))

/** There is no such project. */
export class ProjectNotFound extends Data.TaggedError("ProjectNotFound")<{
  readonly projectId: string
}> {
  override get message(): string {
    return `There is no project "${this.projectId}".`
  }
}
