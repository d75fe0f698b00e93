/** What the statements share that keep the order of ends. */

/** The bound of a membership that has ended. */
const ended = "timestamptz '10000-01-01 00:00:00+00'"

/** An expression for the bound of a membership that has just been looked at. */
export const boundOf = (endDate: string): string =>
  `CASE WHEN ${endDate} <= statement_timestamp() THEN ${ended} ELSE ${endDate} END`

/** The values of `ends_seq` and `ends_from` of a new membership of a locked project `p`. */
export const newEnd = (endDate: string): string => `
  CASE WHEN p.ends_to IS NOT NULL THEN p.bulk_seq END,
  CASE WHEN p.ends_to IS NOT NULL THEN ${endDate} END`

/**
 * Assignments for a membership `m` that is given an end date. One that postpones the end changes no column that
 * an index has, unless the date before was that of a bulk extension or had come.
 *
 * @param seq - an expression for the bulk_seq of the project
 */
export const settingEnd = (seq: string, endDate: string): string => `
  ends_seq = CASE WHEN m.ends_seq < ${seq} THEN ${seq} ELSE m.ends_seq END,
  ends_from =
    CASE WHEN m.ends_seq IS NOT NULL
    THEN least(CASE WHEN m.ends_seq < ${seq} THEN NULL ELSE m.ends_from END, ${endDate}) END`
