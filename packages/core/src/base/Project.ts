/** Projects, to which memberships, webhooks and API keys belong. */

import type { Branded } from "effect/Brand"
import * as Data from "effect/Data"
import * as Identifier from "./Identifier.ts"
import { refined } from "./Refined.ts"

/**
 * Identifier of a project: 1 to 255 characters, none of them a control character. `.` and `..` are
 * invalid because they have a special meaning in a path.
 */
export type ProjectId = Branded<string, "@tenure/core/ProjectId">

/** Brands text as a project id. Throws a `TypeError` if it is invalid. */
export const ProjectId = refined<string, ProjectId>(
  "project id",
  `${Identifier.expected}, and not "." or ".."`,
  (id) => id !== "." && id !== ".." && Identifier.isIdentifier(id),
)

/** The project does not exist. */
export class ProjectNotFound extends Data.TaggedError("ProjectNotFound")<{
  readonly projectId: string
}> {
  override get message(): string {
    return `The project "${this.projectId}" does not exist.`
  }
}
