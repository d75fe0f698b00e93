/** Pages of projects. */

import type { MembershipStore } from "@tenure/core/MembershipStore"
import type { ProjectId } from "@tenure/core/Project"

type Asked = Parameters<MembershipStore["Service"]["listProjects"]>[0]

/** Returns the ids of a page, in order. */
export const of = (
  ids: ReadonlyArray<ProjectId>,
  { after, limit, within }: Asked,
): ReadonlyArray<ProjectId> =>
  ids
    .filter((id) => (after === undefined || id > after) && (within === "all" || within.has(id)))
    // Unlike `localeCompare`, by code unit.
    .toSorted()
    .slice(0, limit)
