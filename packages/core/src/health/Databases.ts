/** How each database is doing, so that one that does not answer hides nothing of the others. */

import * as Effect from "effect/Effect"
import { type Shard, Shards, type Stores } from "../shards/Shard.ts"
import { type Backlog, mostCounted, Outbox } from "../webhooks/Outbox.ts"
import { askAll, Readiness } from "./Readiness.ts"
import { ifKnown } from "./Status.ts"

/** How a database is doing. */
export interface Report {
  /** Its name; `undefined` for the only one, and for the stores of all. */
  readonly name: string | undefined
  /** Whether its stores answer, by what they keep. */
  readonly stores: Readonly<Record<string, boolean>>
  /** `undefined` if it does not answer, or has no deliveries. */
  readonly backlog: Backlog | undefined
}

const silent = { memberships: false, webhooks: false, deliveries: false }

/** Asks which of the stores of a shard answer. */
const answering = ({ memberships, outbox, webhooks }: Stores) =>
  askAll({ memberships: memberships.ping, webhooks: webhooks.ping, deliveries: outbox.ping })

const report = (
  name: string | undefined,
  stores: Effect.Effect<Report["stores"]>,
  backlog: Effect.Effect<Report["backlog"]>,
): Effect.Effect<Report> =>
  Effect.map(Effect.all([stores, backlog], { concurrency: "unbounded" }), ([answers, left]) => ({
    name,
    stores: answers,
    backlog: left,
  }))

const reportOn = ({ name, use }: Shard): Effect.Effect<Report> =>
  report(
    name,
    Effect.catch(use(answering), () => Effect.succeed(silent)),
    ifKnown(use(({ outbox }) => outbox.backlog(mostCounted))),
  )

/** Makes an effect that asks every database, each for up to 5 seconds. */
export const make = Effect.gen(function* () {
  const { stores } = yield* Readiness
  const outbox = yield* Outbox
  const shards = yield* Shards
  const only = report(undefined, stores, ifKnown(outbox.backlog(mostCounted)))
  // What belongs to no project.
  const shared = Effect.map(stores, ({ apiKeys, rateLimits }) => ({ apiKeys, rateLimits }))
  const reports =
    shards.length === 0
      ? [only]
      : [report(undefined, shared, Effect.undefined), ...shards.map(reportOn)]
  return Effect.all(reports, { concurrency: "unbounded" })
})
