/**
 * The numbers of changes, `seq`. A change of one membership takes the next number after that of the membership
 * and that of the project. A bulk extension or an import takes the first number of a new round: it knows that
 * no membership has come so far, without looking at any.
 */

/** How many numbers a round has: a membership cannot be changed as often between two bulk extensions. */
const round = 1_000_000_000

/** An expression for the round of a number. */
export const roundOf = (seq: string): string => `${seq} / ${round}`

/** An expression for the first number of the round after that of a number. */
export const nextRound = (seq: string): string => `(${roundOf(seq)} + 1) * ${round}`
