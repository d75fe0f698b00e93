/** Falsifies runs, to prove that every check can fail. */

import { checks } from "./checks/checks.ts"
import type { Check, Run } from "./history.ts"
import { ofChanges } from "./sabotages/changes.ts"
import { ofDeliveries } from "./sabotages/deliveries.ts"
import { ofProcesses } from "./sabotages/processes.ts"
import { ofReaders } from "./sabotages/readers.ts"
import { NothingToSpoil, type Sabotage } from "./sabotages/sabotage.ts"

/** All falsifications. */
export const sabotages: ReadonlyArray<Sabotage> = [
  ...ofChanges,
  ...ofDeliveries,
  ...ofReaders,
  ...ofProcesses,
]

const textsOf = ({ find }: Check, run: Run): ReadonlySet<string> =>
  new Set(find(run).map(({ text }) => text))

/** What became of a falsification: `nothing` if the run has nothing that could be falsified like this. */
type Outcome = "caught" | "missed" | "nothing"

/** Tells whether its check finds something in the falsified run that it does not find in the run itself. */
export const outcomeOf = ({ check, spoil }: Sabotage, run: Run): Outcome => {
  const before = textsOf(check, run)
  try {
    const after = textsOf(check, spoil(run))
    return [...after].some((text) => !before.has(text)) ? "caught" : "missed"
  } catch (error) {
    if (error instanceof NothingToSpoil) return "nothing"
    throw error
  }
}

/** Falsifies a run in each way that concerns a check, by the names of these ways. */
export const spoil = (check: Check, run: Run): ReadonlyArray<readonly [name: string, run: Run]> =>
  sabotages.flatMap((one) => {
    if (one.check !== check) return []
    try {
      return [[one.name, one.spoil(run)] as const]
    } catch (error) {
      if (error instanceof NothingToSpoil) return []
      throw error
    }
  })

/**
 * Returns the names of the falsifications of some runs that were missed at least once or never caught,
 * and of checks that nothing falsifies.
 */
export const uncaught = (
  outcomes: ReadonlyArray<ReadonlyMap<string, Outcome>>,
): ReadonlyArray<string> => [
  ...sabotages
    .filter(({ name }) => {
      const seen = new Set(outcomes.map((of) => of.get(name)))
      return seen.has("missed") || !seen.has("caught")
    })
    .map(({ name }) => name),
  ...checks
    .filter((check) => !sabotages.some((one) => one.check === check))
    .map(({ name }) => name),
]

/** Falsifies a run in every way. */
export const sabotage = (run: Run): ReadonlyMap<string, Outcome> =>
  new Map(sabotages.map((one) => [one.name, outcomeOf(one, run)]))
