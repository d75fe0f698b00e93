import type { Grant } from "@tenure/core/MembershipStore"
import { texts } from "../connection/parameters.ts"

/** Returns the positions, from 1, of the memberships that exist and that nobody has locked. */
export const findUnlocked = (schema: string): string => `
  SELECT a.n::integer AS n
  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS a (project_id, user_id, n)
  JOIN ${schema}.memberships m ON m.project_id = a.project_id AND m.user_id = a.user_id
  FOR NO KEY UPDATE OF m SKIP LOCKED
`

/** The parameters of `findUnlocked`. */
export const findUnlockedParams = (extensions: ReadonlyArray<Grant>) => [
  texts(extensions.map(({ projectId }) => projectId)),
  texts(extensions.map(({ userId }) => userId)),
]
