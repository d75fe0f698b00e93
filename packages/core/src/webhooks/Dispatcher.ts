/** The dispatcher: delivers by itself, or when the host asks for it. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { Faults } from "../base/Faults.ts"
import type { InvalidInput } from "../base/InvalidInput.ts"
import * as Outage from "../base/Outage.ts"
import { ProjectDeletions } from "../base/ProjectDeletions.ts"
import * as Setting from "../base/Setting.ts"
import type { StoreUnavailable } from "../base/StoreUnavailable.ts"
import * as DeliveryLoop from "./DeliveryLoop.ts"
import * as Flush from "./Flush.ts"
import { type Change, mostCounted, Outbox } from "./Outbox.ts"
import type { WebhookId } from "./Webhook.ts"
import type { WebhookTransport } from "./WebhookTransport.ts"

/** The options of the dispatcher. */
export const options = Setting.struct({
  /**
   * The delays after the first failed attempt, the second, and so on. The default makes ten
   * attempts in a little over three days. Default: `["5 seconds", "5 minutes", "30 minutes", "2
   * hours", "5 hours", "10 hours", "14 hours", "20 hours", "24 hours"]`.
   */
  retrySchedule: Setting.withDefault(
    Setting.list(Setting.millis({ least: 0, most: 30 * 86_400_000 })),
    [
      "5 seconds",
      "5 minutes",
      "30 minutes",
      "2 hours",
      "5 hours",
      "10 hours",
      "14 hours",
      "20 hours",
      "24 hours",
    ],
  ),
  /**
   * The time for one attempt, from resolving the name to the end of the response. Default: `"15
   * seconds"`.
   */
  timeout: Setting.withDefault(Setting.millis({ most: 3_600_000 }), "15 seconds"),
  /** How long all attempts for a webhook may fail before it is disabled. Default: `"5 days"`. */
  disableAfter: Setting.withDefault(Setting.millis(), "5 days"),
  /** The most attempts in flight at the same time, over all webhooks. Default: `1024`. */
  maxInFlight: Setting.withDefault(Setting.count(), 1024),
  /**
   * Whether this process delivers by itself, for as long as it runs. `false` leaves that to calls of
   * `flush` and to other processes on the same database, for example in a serverless function, which is
   * frozen between requests. Default: `true`.
   */
  dispatch: Setting.withDefault(Setting.flag, true),
})

/** The options as a host passes them. */
export interface Options extends Setting.Input<typeof options> {}

/** The options as the library uses them. */
export interface Settings extends Setting.Output<typeof options> {}

/** Delivers events from the outbox: for as long as its layer lives, or when it is told to. */
export class Dispatcher extends Context.Service<
  Dispatcher,
  {
    /**
     * Aborts the attempts in flight for a webhook that was removed. Afterwards none starts in this
     * process, not even one that was claimed. Other processes learn of the removal from the outbox. The
     * deletion of a project does so for all of its webhooks, see `ProjectDeletions`.
     */
    readonly cancel: (webhookId: WebhookId) => Effect.Effect<void>
    /**
     * Sends what is due, until nothing is and no attempt of this process is in flight, or until the time
     * is up. If the process does not deliver by itself (`dispatch: false`), attempts that are then in
     * flight are aborted; they can be made again at once, by another process or the next `flush`.
     *
     * @param options.timeout - how long to send; `"10 seconds"` by default. The store has up to 5 seconds
     *   more to take back what was aborted
     * @returns how many deliveries wait, of all projects, counted up to 10,000. Those that failed and
     *   will be retried later are among them. Fails with `InvalidInput` if the timeout is invalid, and
     *   with `StoreUnavailable` if the store does not answer
     */
    readonly flush: (
      options?: Flush.Options,
    ) => Effect.Effect<number, InvalidInput | StoreUnavailable>
  }
>()("@tenure/core/Dispatcher") {
  static readonly layer = (
    settings: Settings = Setting.readSync(options),
  ): Layer.Layer<Dispatcher, never, Outbox | WebhookTransport> =>
    Layer.effect(Dispatcher, make(settings))
}

const make = Effect.fnUntraced(function* (settings: Settings) {
  const outbox = yield* Outbox
  const faults = yield* Faults
  // A loop lives in the scope in which it is started.
  const services = Context.omit(Scope.Scope)(
    yield* Effect.context<Outbox | WebhookTransport | Scope.Scope>(),
  )
  const claiming = Outage.make(faults, "Deliveries cannot be claimed")
  const watching = Outage.make(faults, "Changes of the outbox cannot be watched")
  const loops = new Set<DeliveryLoop.DeliveryLoop>()

  const cancel = (webhookId: WebhookId): void => {
    for (const loop of loops) loop.cancel(webhookId)
  }

  const deletions = yield* ProjectDeletions
  deletions.listen((projectId) => {
    for (const loop of loops) loop.cancelProject(projectId)
  })

  const follow = (change: Change): void => {
    if (change._tag === "Removed") return cancel(change.webhookId)
    for (const loop of loops) loop.wake()
  }

  const watch = outbox.nextChange.pipe(
    Effect.map((change) => {
      watching.succeeded()
      follow(change)
    }),
    Effect.catchCause((cause) =>
      Effect.andThen(watching.failed(cause), Effect.sleep(DeliveryLoop.storeRetryMillis)),
    ),
  )

  const start = Effect.gen(function* () {
    yield* Effect.forkScoped(Effect.forever(watch))
    const loop = yield* DeliveryLoop.start(settings, claiming)
    loops.add(loop)
    yield* Effect.addFinalizer(() => Effect.sync(() => loops.delete(loop)))
    return loop
  }).pipe(Effect.provideContext(services))

  const own = settings.dispatch ? yield* start : undefined

  const send = (timeout: number) =>
    Effect.scoped(
      Effect.flatMap(own === undefined ? start : Effect.succeed(own), ({ idle }) =>
        Effect.timeoutOption(idle, timeout),
      ),
    )

  return Dispatcher.of({
    cancel: (webhookId) => Effect.sync(() => cancel(webhookId)),
    flush: Effect.fnUntraced(function* (given: Flush.Options = {}) {
      const { timeout } = yield* Setting.read(Flush.options, given)
      yield* send(timeout)
      const { waiting } = yield* outbox.backlog(mostCounted)
      return waiting
    }),
  })
})
