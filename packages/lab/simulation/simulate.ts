/** Performs the run of a seed, and judges it. */

import { invariants } from "./invariants.ts"
import { beginning } from "./loop.ts"
import { type Run, type Told, type Violation, makeNotes } from "./record.ts"
import { atServer, prepare, readRemains, token } from "./server.ts"
import { type Weather, weatherOf } from "./weather.ts"
import { startClients } from "./workload.ts"
import { type WorldOptions, load, makeWorld } from "./world.ts"

/** A run, and what is to be said of it. */
export interface Outcome {
  readonly seed: number
  readonly weather: Weather
  readonly run: Run
  readonly violations: ReadonlyArray<Violation>
  /** What happened, if that was asked for. */
  readonly told: ReadonlyArray<Told>
  readonly steps: number
  /** How much time has passed in the run, in milliseconds. */
  readonly simulatedMillis: number
}

// Longer than all delays between attempts together, and than the longest lease.
const drainMillis = 900_000

let loaded: Promise<unknown> | undefined

/** Performs the run of a seed. */
export const simulate = async (seed: number, options: WorldOptions = {}): Promise<Outcome> => {
  await (loaded ??= load())
  const weather = weatherOf(seed)
  const notes = makeNotes()
  const world = makeWorld(seed, weather, notes, options)
  atServer(world, prepare)
  startClients(world, weather, seed, token)
  const { loop } = world
  await loop.runUntil(beginning + weather.millis)
  world.heal()
  await loop.runUntil(beginning + weather.millis + drainMillis)
  const run: Run = { ...notes, remains: atServer(world, readRemains(world)) }
  return {
    seed,
    weather,
    run,
    violations: invariants.flatMap(({ find, name }) =>
      find(run, weather).map((text) => ({ invariant: name, text })),
    ),
    told: world.told,
    steps: loop.steps(),
    simulatedMillis: loop.now() - beginning,
  }
}
