/** Records operations, gives each what identifies it, and says what everybody at work has in common. */

import { now } from "../clock.ts"
import type { Operation } from "../history.ts"
import { type Random, random } from "../random.ts"
import type { World } from "../world/world.ts"

/** What is known before the answer. */
export type Asked = Omit<Operation, "start" | "end" | "status">

/** What the answer adds. */
export type Answered = Pick<Operation, "status"> & Partial<Operation>

export interface Recorder {
  /** Performs an operation and records it. Returns what was recorded. */
  readonly record: (asked: Asked, perform: () => Promise<Answered>) => Promise<Operation>
  readonly operations: () => ReadonlyArray<Operation>
  /** An end date, far in the future, that no other operation asks for: later ones are not always later dates. */
  readonly nextDate: () => number
  /** An end date so many milliseconds ahead, that no other operation asks for. */
  readonly dateAhead: (millis: number) => number
  /** The latest date ahead. */
  readonly latestAhead: () => number
  /** A number that nothing else has. */
  readonly nextNumber: () => number
}

const firstDate = Date.UTC(2100, 0)

// More than there are operations, so that their numbers make dates unique, and less than a day, so that this holds
// for dates that were extended by days, too.
const spread = 864_000

const dates = 100_000

export const makeRecorder = (seed: number): Recorder => {
  const choose = random(seed, "dates")
  const operations: Array<Operation> = []
  const near = new Set<number>()
  let latest = 0
  let count = 0
  const nextNumber = () => ++count
  return {
    nextNumber,
    nextDate: () => firstDate + spread * choose.below(dates) + nextNumber(),
    dateAhead: (millis) => {
      let date = Math.round(now() + millis)
      while (near.has(date)) date++
      near.add(date)
      latest = Math.max(latest, date)
      return date
    },
    operations: () => [...operations],
    latestAhead: () => latest,
    record: async (asked, perform) => {
      const start = now()
      const answered = await perform()
      const operation = { ...asked, start, end: now(), ...answered }
      operations.push(operation)
      return operation
    },
  }
}

/** What everybody at work has in common. */
export interface Scene {
  readonly world: World
  readonly recorder: Recorder
  readonly seed: number
  readonly isOver: () => boolean
}

/** Somebody at work, who makes their own choices. */
export interface Actor extends Scene {
  readonly choose: Random
}

/** Gives somebody their choices. */
export const actor = (scene: Scene, name: string): Actor => ({
  ...scene,
  choose: random(scene.seed, name),
})

/** Takes one step after the other, and rests between two times in milliseconds after each, until it is over. */
export const repeat = async (
  { choose, isOver, world }: Actor,
  step: () => Promise<unknown>,
  least = 20,
  most = 150,
): Promise<void> => {
  while (!isOver()) {
    await step()
    await world.rest(choose, least, most)
  }
}

// A member's changes follow each other so fast that many of these dates come as they are overwritten.
const nearMillis = 1000

/**
 * An end date that no other operation asks for: most often far in the future, sometimes about to come. With the
 * answer's statuses: the date may have come by a server's clock.
 */
export const anyDate = ({
  choose,
  recorder,
}: Actor): Pick<Operation, "expected"> & { readonly endDate: number } =>
  choose.chance(0.2)
    ? { endDate: recorder.dateAhead(choose.between(0, nearMillis)), expected: [200, 422] }
    : { endDate: recorder.nextDate(), expected: [200] }
