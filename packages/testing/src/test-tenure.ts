/** Tenure for a host's tests: in memory, with a clock moved by the test, and recorded webhooks. */

import {
  type CreateTenureOptions,
  type Event,
  InvalidInput,
  type Tenure,
  createTenure,
} from "@tenure/core"
import {
  type InstantInput,
  Setting,
  createTenureOptions,
  fromCallSite,
  instantSetting,
  latestInstant,
  startTenure,
} from "@tenure/core/internal"
import { memory } from "@tenure/memory"
import { type ClockStep, clockStep } from "./clock-step.ts"
import { makeControlledRuntime } from "./controlled-runtime.ts"
import { type RecorderClock, type TestWebhooks, makeWebhookRecorder } from "./recorded-webhooks.ts"

/** The options of `testTenure`. */
export interface TestTenureOptions<Provided = never> extends Omit<
  CreateTenureOptions<Provided>,
  "stores" | "transport"
> {
  /** The clock's time at the start. Default: `"2030-01-01T00:00:00.000Z"`. */
  readonly start?: InstantInput | undefined
  /**
   * Stores in place of those in memory, for example `postgres({ url })`. A database has a clock of its
   * own, so the clock of the test is then the system's, and cannot be advanced. Default: `memory()`.
   */
  readonly stores?: CreateTenureOptions<Provided>["stores"] | undefined
}

/** Tenure's clock in a test. */
export interface TestClock {
  /** Returns the time in milliseconds since the epoch, as `Date.now()` does. */
  readonly now: () => number
  /**
   * Moves the clock forward. Runs everything that is due on the way, in time order: reminders, ends, deliveries and
   * their retries. Resolves when nothing is left to do, and `onEvent`'s promises have settled. Rejects with
   * `InvalidInput` if the duration is invalid, or if `stores` were given.
   *
   * @param duration - text such as `"31 days"`, milliseconds, or a duration of ISO 8601 such as `"P1M"`, added as
   * `extend` adds it. 0 runs what is due now
   */
  readonly advance: (duration: ClockStep) => Promise<void>
  /** Moves the clock forward to a date, as `advance` does. */
  readonly advanceTo: (date: InstantInput) => Promise<void>
}

/** Tenure in a test. */
export interface TestTenure extends AsyncDisposable {
  /** Tenure as `createTenure` returns it. Mount it with any adapter. */
  readonly tenure: Tenure
  readonly clock: TestClock
  readonly webhooks: TestWebhooks
  /** Closes Tenure. Nothing is left running. Further calls return the same promise. */
  readonly close: () => Promise<void>
}

const startOption = Setting.object({
  start: Setting.withDefault(instantSetting, "2030-01-01T00:00:00.000Z"),
})

const { stores: storesOption, transport: _, ...otherOptions } = createTenureOptions.fields

const testTenureOptions = Setting.object({
  ...startOption.fields,
  stores: Setting.optional(storesOption),
  ...otherOptions,
})

const durationArgument = Setting.object({ duration: clockStep })

const dateArgument = Setting.object({ date: instantSetting })

type Options = Omit<CreateTenureOptions, "stores">

/** A test's time, and how Tenure starts and closes in it. */
interface TestTime extends RecorderClock {
  readonly clock: TestClock
  readonly start: (options: Options) => Promise<Tenure>
  readonly close: (tenure: Tenure) => Promise<void>
}

/** The system's time, which stores in a database have. */
const makeRealTime = <Provided>(stores: CreateTenureOptions<Provided>["stores"]): TestTime => {
  const now = (): number => Date.now()
  const refuse = async (): Promise<never> => {
    const problem =
      "must be left out to advance the clock, because databases have clocks of their own"
    throw new InvalidInput({ field: "stores", problem })
  }
  return {
    clock: { now, advance: refuse, advanceTo: refuse },
    now,
    settle: () => Promise.resolve(),
    start: (options) => createTenure({ ...options, stores }),
    close: (tenure) => tenure.close(),
  }
}

/** Time that stands still until the test moves it. */
const makeControlledTime = (startsAt: number): TestTime => {
  const { advance, now, runUntil, services, track } = makeControlledRuntime({
    start: startsAt,
    isSeeded: true,
  })

  const advanceBy: TestClock["advance"] = (given) =>
    fromCallSite(advanceBy, async () => {
      const { duration } = Setting.parse(durationArgument, { duration: given })
      await advance((time) => Math.min(latestInstant, duration(time)))
    })

  const advanceTo: TestClock["advanceTo"] = (given) =>
    fromCallSite(advanceTo, async () => {
      const { date } = Setting.parse(dateArgument, { date: given })
      if (date < now()) {
        const problem = `must not be before the clock's time, ${new Date(now()).toISOString()}`
        throw new InvalidInput({ field: "date", problem })
      }
      await advance(() => date)
    })

  return {
    clock: {
      now,
      advance: advanceBy,
      advanceTo,
    },
    now,
    settle: () => advance((time) => time),
    start: ({ onEvent, ...options }) => {
      const tracked =
        onEvent &&
        ((event: Event) => {
          const result: unknown = onEvent(event)
          track(result)
          return result
        })
      return startTenure({ ...options, onEvent: tracked, stores: memory() }, services)
    },
    close: (tenure) => runUntil(tenure.close()),
  }
}

const makeTime = <Provided>({
  start,
  stores,
}: Pick<TestTenureOptions<Provided>, "start" | "stores">): TestTime => {
  if (stores === undefined) return makeControlledTime(Setting.parse(startOption, { start }).start)
  if (start === undefined) return makeRealTime(stores)
  const problem = "must be left out with stores, because databases have clocks of their own"
  throw new InvalidInput({ field: "start", problem })
}

/**
 * Starts Tenure for a test. It is in memory, its time stands still until the test moves it, and webhooks
 * are recorded instead of sent. Works with every test
 * runner. Each run has the same ids, secrets and tokens, so keep it to tests.
 *
 * @returns Tenure, its clock and its webhooks. The promise rejects with `InvalidInput` if an option is
 *   invalid
 * @example
 * ```ts
 * import { testTenure } from "tenure/testing"
 *
 * await using test = await testTenure()
 * const { clock, tenure, webhooks } = test
 * await webhooks.register("p1")
 * const endDate = "2030-02-01T00:00:00.000Z"
 * await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate })
 * await clock.advance("31 days")
 * const { data } = await webhooks.next("membership.expired")
 * console.log(data.user_id)
 * ```
 */
export const testTenure = <Provided = never>(
  given: TestTenureOptions<Provided> = {},
): Promise<TestTenure> => fromCallSite(testTenure, () => start(given))

const start = async <Provided>(given: TestTenureOptions<Provided>): Promise<TestTenure> => {
  Setting.parse(testTenureOptions, given)
  const { start: startsAt, stores, ...options } = given
  const time = makeTime({ start: startsAt, stores })
  const recorder = makeWebhookRecorder(time)
  const tenure = await time.start({ ...options, transport: recorder.transport })
  let closed: Promise<void> | undefined
  const close = () => (closed ??= time.close(tenure))
  const webhooks = recorder.webhooksOf(tenure)
  return { tenure, clock: time.clock, webhooks, close, [Symbol.asyncDispose]: close }
}
