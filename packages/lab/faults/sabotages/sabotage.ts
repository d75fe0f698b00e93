/** Ways to falsify a run, and what they share. */

import type { Check, Operation, Run, State } from "../history.ts"

/** A way to falsify a run. */
export interface Sabotage {
  readonly name: string
  readonly check: Check
  readonly spoil: (run: Run) => Run
}

/** A run has nothing that could be falsified in some way. */
export class NothingToSpoil extends Error {}

/** Returns what a falsification needs. */
export const wanted = <A>(item: A | undefined): A => {
  if (item === undefined) throw new NothingToSpoil()
  return item
}

/** Returns items with one of them replaced by others, or by none. */
export const replace = <A>(
  items: ReadonlyArray<A>,
  old: A,
  ...by: ReadonlyArray<A>
): ReadonlyArray<A> => items.flatMap((item) => (item === old ? by : [item]))

/** Changes what the database holds in the end. */
export const withState = (run: Run, changed: Partial<State>): Run => ({
  ...run,
  state: { ...run.state, ...changed },
})

/** Replaces an operation. */
export const withOperation = (run: Run, old: Operation, ...by: ReadonlyArray<Operation>): Run => ({
  ...run,
  operations: replace(run.operations, old, ...by),
})

/** A time that is longer than any run, in milliseconds. */
export const hour = 3_600_000
