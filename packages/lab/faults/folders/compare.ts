/** Compares what is in a folder with what was answered before its process was killed. */

import { changeOf, userIds } from "./changes.ts"

/** How often a change is found. */
export interface Found {
  readonly reason: string
  readonly changes: number
  readonly events: number
  readonly deliveries: number
}

/** What the next process finds. */
export interface Content {
  readonly found: ReadonlyArray<Found>
  /** The members whose end date is not that of their last change. */
  readonly untrue: ReadonlyArray<{ readonly user: string }>
}

const isWhole = ({ changes, deliveries, events }: Found): boolean =>
  changes === 1 && events === 1 && deliveries === 1

/** The change of a member that may be there without having been answered. */
const nextOf = (seed: number, answered: ReadonlySet<string>, userId: string): string => {
  let number = 1
  while (answered.has(changeOf(seed, userId, number).reason)) number++
  return changeOf(seed, userId, number).reason
}

/**
 * Returns what must not be.
 *
 * @param before - the reasons of the changes that were there before the seed's
 * @param answered - the reasons of those that were answered
 */
export const compare = (
  seed: number,
  before: ReadonlySet<string>,
  answered: ReadonlySet<string>,
  { found, untrue }: Content,
): ReadonlyArray<string> => {
  const reasons = new Set(found.map(({ reason }) => reason))
  const expected = [...before, ...answered]
  const allowed = new Set([...expected, ...userIds.map((id) => nextOf(seed, answered, id))])
  return [
    ...expected.filter((reason) => !reasons.has(reason)).map((reason) => `${reason} is lost`),
    ...[...reasons].filter((reason) => !allowed.has(reason)).map((one) => `${one} was never made`),
    ...found.filter((one) => !isWhole(one)).map((one) => `In parts: ${JSON.stringify(one)}`),
    ...untrue.map(({ user }) => `The end date of ${user} is not that of the last change`),
  ]
}
