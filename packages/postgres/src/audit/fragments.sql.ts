/** What the statements share that change something else than memberships. */

import type { OtherAction } from "@tenure/core/Membership"
import type { Occasion } from "@tenure/core/Origin"
import { instant, text } from "../connection/parameters.ts"
import { roundOf } from "../sequence.sql.ts"

/** The number of the project of what belongs to none. */
export const noProject = 0

const occasionFrom = (first: number | undefined): string =>
  first === undefined
    ? "s.at, s.request_id, s.key_id"
    : `$${first}::timestamptz, $${first + 1}::text, $${first + 2}::text`

/**
 * The common table expression `audited`, which adds an audit row for each row of `source`. That has the
 * columns `project_number` and `subject`.
 *
 * @param first - the number of the first of the three parameters, which `occasionParams` returns; without it,
 *   `source` has the columns `at`, `request_id` and `key_id`
 * @param action - what happened, as an expression in SQL
 */
export const recording = (
  schema: string,
  source: string,
  first: number | undefined,
  action: `'${OtherAction}'` | `CASE ${string} END` | `$${number}::text`,
): string => `
  audited AS (
    INSERT INTO ${schema}.audit (project_number, seq, subject, action, at, request_id, key_id)
    SELECT s.project_number,
           coalesce((SELECT ${roundOf("p.seq")} FROM ${schema}.projects p WHERE p.number = s.project_number), 0),
           s.subject, ${action}, ${occasionFrom(first)}
    FROM ${source} s
  )`

/** The parameters of `recording`. */
export const occasionParams = ({ at, origin }: Occasion) => [
  instant(at),
  text(origin.requestId),
  text(origin.keyId),
]
