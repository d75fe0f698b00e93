/** Performs a seed's run, and judges it. */

import { verifyWebhook } from "@tenure/client"
import { invariants } from "./invariants.ts"
import { beginning } from "./loop.ts"
import {
  type Arrival,
  type Notes,
  type Run,
  type Told,
  type Violation,
  makeNotes,
} from "./record.ts"
import { afterServer, prepare, readRemains, token } from "./server.ts"
import { type Weather, weatherOf } from "./weather.ts"
import { startClients } from "./workload.ts"
import { type WorldOptions, load, makeWorld } from "./world.ts"

/** A run, and what is to be said about it. */
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

// Clocks are set by an hour.
const toleranceSeconds = 8000

/** Verifies what arrived, as receivers do by the client's package. */
const verify = ({ arrivals, webhooks }: Notes): Promise<unknown> => {
  const secrets = new Map(webhooks.map(({ secret, url }) => [url, secret]))
  const judge = async (arrival: Arrival): Promise<void> => {
    const secret = secrets.get(arrival.url)
    if (secret === undefined) return
    const options = { now: arrival.wallMillis, toleranceSeconds }
    arrival.trusted = await verifyWebhook(arrival, [secret], options).catch(String)
  }
  return Promise.all(arrivals.map(judge))
}

let loaded: Promise<unknown> | undefined

/** Performs a seed's run. */
export const simulate = async (seed: number, options: WorldOptions = {}): Promise<Outcome> => {
  await (loaded ??= load())
  const weather = weatherOf(seed)
  const notes = makeNotes()
  const world = makeWorld(seed, weather, notes, options, await options.database?.begin())
  await afterServer(world, prepare)
  startClients(world, weather, token)
  const { loop } = world
  await loop.runUntil(beginning + weather.millis)
  world.heal()
  await loop.runUntil(world.endsAt)
  if (notes.deaths.length > 0) throw new Error(`In seed ${seed}, ${notes.deaths.join("; ")}`)
  await verify(notes)
  const run: Run = { ...notes, remains: await afterServer(world, readRemains(world)) }
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
