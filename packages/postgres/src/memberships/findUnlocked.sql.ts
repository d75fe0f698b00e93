import type { Grant } from "@tenure/core/MembershipStore"
import { texts } from "../connection/parameters.ts"

/** The common table expression `asked`: the parameters whose projects exist. */
const asked = (schema: string): string => `
  asked AS MATERIALIZED (
    SELECT a.n, p.number AS project_number, a.user_id
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS a (project_id, user_id, n)
    JOIN ${schema}.projects p ON p.id = a.project_id
  )`

/** The common table expression `member`: the memberships of `asked` that nobody has locked. */
const unlockedMembers = (schema: string): string => `
  member AS MATERIALIZED (
    SELECT a.n
    FROM asked a
    JOIN ${schema}.memberships m ON m.project_number = a.project_number AND m.user_id = a.user_id
    FOR NO KEY UPDATE OF m SKIP LOCKED
  )`

/** Returns the positions, from 1, of the memberships that exist and that nobody has locked. */
export const findUnlocked = (schema: string): string => `
  WITH ${asked(schema)},${unlockedMembers(schema)}
  SELECT n::integer FROM member
`

/**
 * Returns the positions, from 1, of the memberships that can be granted: nobody has locked the project,
 * nor the membership if it exists.
 */
export const findGrantable = (schema: string): string => `
  WITH ${asked(schema)},${unlockedMembers(schema)},
  project AS MATERIALIZED (
    SELECT number FROM ${schema}.projects WHERE id = ANY ($1) FOR NO KEY UPDATE SKIP LOCKED
  )
  SELECT a.n::integer
  FROM asked a
  JOIN project p ON p.number = a.project_number
  LEFT JOIN ${schema}.memberships m ON m.project_number = a.project_number AND m.user_id = a.user_id
  WHERE m.user_id IS NULL OR EXISTS (SELECT FROM member WHERE n = a.n)
`

/** The parameters of both statements. */
export const findUnlockedParams = (changes: ReadonlyArray<Grant>) => [
  texts(changes.map(({ projectId }) => projectId)),
  texts(changes.map(({ userId }) => userId)),
]
