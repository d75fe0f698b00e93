/**
 * Migration 1: the order of the ends of memberships.
 *
 * An index on the end date itself would make each extension write to it, and a bulk extension changes no
 * membership. So the index has a lower bound of the date, which an extension leaves where it is. Whoever lists
 * the ends and finds that a membership ends later sets the bound.
 *
 * The index is written to only for projects whose ends have been listed: it makes imports dearer by a quarter.
 */

/** The column of a project. */
export const endsPlace = `
    -- Members up to this user id have a place in the order of ends, and new ones get one. NULL if nobody has listed
    -- the ends yet. A colon comes after all user ids.
    ends_to       text COLLATE "C"`

/** The columns of a membership. */
export const endsColumns = `
    -- The bulk_seq of the project when ends_from was set; NULL without a place. If it is smaller than the current
    -- one, the membership does not end before the date of the last bulk extension.
    ends_seq  bigint,
    -- Otherwise it does not end before this time: the first day of the year 10000 if it has ended.
    ends_from timestamptz`

/** Creates the index. */
export const createEnds = (schema: string): string => `
  CREATE INDEX memberships_ends ON ${schema}.memberships (project_number, ends_seq, ends_from, user_id)
  WHERE ends_seq IS NOT NULL
`
