/**
 * Deliveries on machines that are not here: Tenure's own dispatchers on a simulated clock. Their outbox,
 * their receivers and all processors are simulated; they are busy for as long as was measured.
 */

import { Dispatcher, Webhooks } from "@tenure/core/effect"
import { MembershipStore, Outbox, ProjectId, type WebhookId, hostOrigin } from "@tenure/core/store"
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
  /** The settlement of a delivery in the database. */
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
  /** Of as many projects. There is always something to deliver to each. */
  readonly webhooks: number
  /** How long receivers take to answer. */
  readonly delayMillis: number
  /**
   * The processors: of one machine that does everything, receivers included; or of the database,
   * while each process has one of its own, and receivers are elsewhere.
   */
  readonly processors: { readonly of: "everything" | "database"; readonly count: number }
}

// Webhooks are registered, and never asked to deliver: the dispatchers of processes do.
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

/** Is busy for so long, when it is its turn at all of these. */
const busy = (places: ReadonlyArray<Semaphore.Semaphore>, micros: number): Effect.Effect<void> =>
  places.reduceRight<Effect.Effect<void>>(
    (work, place) => place.withPermit(work),
    Effect.sleep(micros / 1000),
  )

/** The outbox that all processes share, and where its time goes. */
const makeDatabase = (outbox: Outbox["Service"], costs: Costs, processors: Semaphore.Semaphore) => {
  // One claim runs at a time.
  const turn = Semaphore.makeUnsafe(1)
  const holders = new Map<WebhookId, Map<object, number>>()
  const hold = (id: WebhookId, holder: object, change: 1 | -1): void => {
    const held = holders.get(id) ?? new Map<object, number>()
    const count = (held.get(holder) ?? 0) + change
    if (count === 0) held.delete(holder)
    else held.set(holder, count)
    holders.set(id, held)
  }
  const isElsewhere = (id: WebhookId, holder: object): boolean =>
    [...(holders.get(id)?.keys() ?? [])].some((other) => other !== holder)
  let settled = 0

  /** The outbox as one process has it. */
  const seenBy = (holder: object): Outbox["Service"] => ({
    ...outbox,
    claim: (asked) =>
      turn
        .withPermit(
          Effect.gen(function* () {
            const ahead = new Map([...asked.ahead].filter(([id]) => !isElsewhere(id, holder)))
            const claimed = yield* outbox.claim({ ...asked, ahead })
            const { length } = claimed.claims
            for (const { webhook } of claimed.claims) hold(webhook.webhookId, holder, 1)
            yield* busy([processors], costs.claim.fixed + length * costs.claim.each)
            return claimed
          }),
        )
        .pipe(Effect.tap(Effect.sleep(costs.roundTrip / 1000))),
    settle: (claim, settlement) =>
      Effect.gen(function* () {
        yield* busy([processors], costs.settlement)
        const result = yield* outbox.settle(claim, settlement)
        hold(claim.webhook.webhookId, holder, -1)
        settled++
        yield* Effect.sleep(costs.roundTrip / 1000)
        return result
      }),
    // Who has enough to deliver is told nothing new.
    nextChange: Effect.never,
  })
  return { seenBy, settled: () => settled }
}

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

const projectOf = (index: number) => ProjectId(`simulated-${index}`)

/** Registers the webhooks, and publishes enough to deliver. */
const fill = Effect.fnUntraced(function* ({ webhooks }: Setup, each: number) {
  const origin = { origin: hostOrigin, at: 0 }
  const projects = yield* MembershipStore
  const { create } = yield* Webhooks
  const outbox = yield* Outbox
  for (let index = 0; index < webhooks; index++) {
    const projectId = projectOf(index)
    yield* projects.createProject(projectId, origin)
    yield* create({ projectId, url: "https://receiver.example/" })
    for (let count = 0; count < each; count++) yield* outbox.publish(eventOf(projectId))
  }
})

/**
 * Returns how many deliveries a second there are.
 *
 * @param most - about as many as there may be, so that there is always something to deliver
 */
export const rateOf = (setup: Setup, costs: Costs, most: number): number =>
  run(
    Effect.gen(function* () {
      const seconds = settlingInSeconds + countedSeconds
      yield* fill(setup, Math.ceil((most * seconds) / setup.webhooks))
      const isOneMachine = setup.processors.of === "everything"
      const processors = Semaphore.makeUnsafe(setup.processors.count)
      const receiver = isOneMachine ? [Semaphore.makeUnsafe(1), processors] : []
      const database = makeDatabase(yield* Outbox, costs, processors)
      for (let process = 0; process < setup.processes; process++) {
        const thread = Semaphore.makeUnsafe(1)
        const at = { process: isOneMachine ? [thread, processors] : [thread], receiver }
        yield* Layer.build(Dispatcher.layer()).pipe(
          Effect.provideService(Outbox, database.seenBy(thread)),
          Effect.provideService(WebhookTransport, transportOf(setup, costs, at)),
        )
      }
      yield* Effect.sleep(`${settlingInSeconds} seconds`)
      const before = database.settled()
      yield* Effect.sleep(`${countedSeconds} seconds`)
      return (database.settled() - before) / countedSeconds
    }).pipe(Effect.scoped, Effect.provide(services)),
  )
