/**
 * Deliveries on machines that are not here: Tenure's own dispatchers on a simulated clock. Their outbox,
 * their receivers and all processors are simulated; they are busy for as long as was measured.
 */

import { Dispatcher, Webhooks } from "@tenure/core/effect"
import { MembershipStore, Outbox, ProjectId, hostOrigin } from "@tenure/core/store"
import { AddressPolicy, WebhookTransport } from "@tenure/core/transport"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import { eventOf } from "../benchmark/backlog.ts"
import { run } from "./simulated.ts"

/** What things take, in microseconds. */
export interface Costs {
  /** A claim in the database, and what each delivery adds to it. */
  readonly claim: { readonly fixed: number; readonly each: number }
  /** A settlement in the database. */
  readonly settlement: number
  /** A delivery in the process that sends it. */
  readonly sending: number
  /** A delivery in its receiver. */
  readonly receiving: number
  /** The way to the database and back. */
  readonly roundTrip: number
}

/** What is simulated. */
export interface Setup {
  readonly processes: number
  /** Each in its own project. There is always something to deliver to each. */
  readonly webhooks: number
  /** How long receivers take to answer. */
  readonly delayMillis: number
  /**
   * The processors: of one machine that does everything, receivers included; or of the database,
   * while each process has one of its own, and receivers are elsewhere.
   */
  readonly processors: { readonly of: "everything" | "database"; readonly count: number }
}

// Webhooks are registered, and never asked to deliver: the processes' dispatchers do.
const services = Webhooks.layer().pipe(
  Layer.provide(
    Layer.succeed(Dispatcher, { cancel: () => Effect.void, flush: () => Effect.succeed(0) }),
  ),
  Layer.provide(AddressPolicy.layer()),
  Layer.provide(
    Layer.succeed(WebhookTransport, { sendsHttpToNames: true, send: () => Effect.never }),
  ),
  Layer.provideMerge(memory()),
)

// Before this, each webhook finds its concurrency; after it, deliveries are counted for so long.
const settlingInSeconds = 3
const countedSeconds = 2

/** Is busy for so long, once it has its turn everywhere. */
const busy = (places: ReadonlyArray<Semaphore.Semaphore>, micros: number): Effect.Effect<void> =>
  places.reduceRight<Effect.Effect<void>>(
    (work, place) => place.withPermit(work),
    Effect.sleep(micros / 1000),
  )

/** Settled deliveries. */
interface Settled {
  count: number
}

/** A process's part in the outbox in the database, whose processors all processes share. */
const partOf = (
  outbox: Outbox["Service"],
  costs: Costs,
  processors: Semaphore.Semaphore,
  settled: Settled,
): Outbox["Service"] => ({
  ...outbox,
  claim: (asked) =>
    Effect.gen(function* () {
      const claimed = yield* outbox.claim(asked)
      yield* busy([processors], costs.claim.fixed + claimed.claims.length * costs.claim.each)
      yield* Effect.sleep(costs.roundTrip / 1000)
      return claimed
    }),
  settle: (claim, settlement) =>
    Effect.gen(function* () {
      yield* busy([processors], costs.settlement)
      const result = yield* outbox.settle(claim, settlement)
      settled.count++
      yield* Effect.sleep(costs.roundTrip / 1000)
      return result
    }),
  // Who has enough to deliver is told nothing new.
  nextChange: Effect.never,
})

/** Sends to receivers that take their time. */
const transportOf = (
  { delayMillis }: Setup,
  { receiving, sending }: Costs,
  at: Record<"process" | "receiver", ReadonlyArray<Semaphore.Semaphore>>,
): WebhookTransport["Service"] => ({
  sendsHttpToNames: true,
  send: () =>
    busy(at.process, sending).pipe(
      Effect.andThen(busy(at.receiver, receiving)),
      Effect.andThen(Effect.sleep(delayMillis)),
      Effect.as({ status: 204, retryAfter: undefined, body: "" }),
    ),
})

/** Registers a process's webhooks, and publishes enough to deliver. */
const fill = Effect.fnUntraced(function* (setup: Setup, process: number, each: number) {
  const origin = { origin: hostOrigin, at: 0 }
  const projects = yield* MembershipStore
  const { create } = yield* Webhooks
  const outbox = yield* Outbox
  for (let index = process; index < setup.webhooks; index += setup.processes) {
    const projectId = ProjectId(`simulated-${index}`)
    yield* projects.createProject(projectId, origin)
    yield* create({ projectId, url: "https://receiver.example/" })
    for (let count = 0; count < each; count++) yield* outbox.publish(eventOf(projectId))
  }
  return outbox
})

/**
 * Returns how many deliveries a second there are. Each process has its own part of the webhooks, as in PostgreSQL while
 * all are busy.
 *
 * @param most - about as many as there may be, so that there is always something to deliver
 */
export const rateOf = (setup: Setup, costs: Costs, most: number): number =>
  run(
    Effect.gen(function* () {
      const seconds = settlingInSeconds + countedSeconds
      const each = Math.ceil((most * seconds) / setup.webhooks)
      const isOneMachine = setup.processors.of === "everything"
      const processors = Semaphore.makeUnsafe(setup.processors.count)
      const receiver = isOneMachine ? [Semaphore.makeUnsafe(1), processors] : []
      const settled: Settled = { count: 0 }
      for (let process = 0; process < setup.processes; process++) {
        const own = yield* Layer.build(Layer.fresh(services))
        const outbox = yield* Effect.provideContext(fill(setup, process, each), own)
        const thread = Semaphore.makeUnsafe(1)
        const at = { process: isOneMachine ? [thread, processors] : [thread], receiver }
        yield* Layer.build(Layer.fresh(Dispatcher.layer())).pipe(
          Effect.provideService(Outbox, partOf(outbox, costs, processors, settled)),
          Effect.provideService(WebhookTransport, transportOf(setup, costs, at)),
        )
      }
      yield* Effect.sleep(`${settlingInSeconds} seconds`)
      const before = settled.count
      yield* Effect.sleep(`${countedSeconds} seconds`)
      return (settled.count - before) / countedSeconds
    }).pipe(Effect.scoped),
  )
