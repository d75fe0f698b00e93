/** What the statements share that keep the order of ends. */

/** The bound of a membership that has ended. */
export const ended = "timestamptz '10000-01-01 00:00:00+00'"

/**
 * Assignments for a membership `m` that is given an end date. One that postpones the end changes no column that
 * an index has, unless the date before was that of a bulk extension or had come.
 *
 * @param seq - an expression for the bulk_seq of the project
 * @param isLeft - a condition under which the end date stays as it is
 */
export const settingEnd = (seq: string, endDate: string, isLeft = "false"): string => `
  ends_seq = CASE WHEN ${isLeft} THEN m.ends_seq ELSE greatest(m.ends_seq, ${seq}) END,
  ends_from =
    CASE WHEN ${isLeft} THEN m.ends_from
    WHEN m.ends_seq >= ${seq} THEN least(m.ends_from, ${endDate})
    ELSE ${endDate} END`
