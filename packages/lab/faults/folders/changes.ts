/** The changes of a seed. */

/** The webhook of the project gets the events of all changes. */
export const projectId = "p1"

/** The members, who are changed at the same time. */
export const userIds = ["1001", "1002", "1003", "1004"] as const

// The first of January 2030.
const start = 1_893_456_000_000

const mostOfSeed = 1_000_000

/** A change of a member: the later it is made, the later the end date. Its row and its event have the reason. */
export const changeOf = (seed: number, userId: string, number: number) => ({
  projectId,
  userId,
  endDate: start + seed * mostOfSeed + number,
  reason: `${seed}/${userId}/${number}`,
})
