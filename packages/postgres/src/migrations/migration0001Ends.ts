/**
 * Migration 1: the order of the ends of memberships.
 *
 * An index on the end date itself would make each extension write to it, and a bulk extension changes no
 * membership. So the index has a lower bound of the date, which an extension leaves where it is. Whoever lists
 * the ends and finds that a membership ends later sets the bound.
 */

/** The columns of a membership that the list has. */
export const endsColumns = `
    -- The bulk_seq of the project when ends_from was set. If that is smaller than the current one, the membership
    -- does not end before the date of the last bulk extension. Otherwise it does not end before ends_from.
    ends_seq  bigint NOT NULL DEFAULT 0,
    -- The first day of the year 10000 if it has ended.
    ends_from timestamptz NOT NULL DEFAULT '0001-01-01 00:00:00+00 BC'`

/** Creates the index. */
export const createEnds = (schema: string): string => `
  CREATE INDEX memberships_ends ON ${schema}.memberships (project_number, ends_seq, ends_from, user_id)
`
