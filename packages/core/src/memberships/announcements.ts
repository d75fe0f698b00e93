/** The announcement option, and the layer to announce memberships' ends. */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { InvalidInput, type StoreUnavailable } from "../base/errors.ts"
import * as Setting from "../base/setting.ts"
import { type Millis, currentUnixMillis } from "../base/time.ts"
import type { Foresight } from "./foresight.ts"
import { MembershipStore } from "./store.ts"

/** The most reminders. */
const maxReminders = 10

/** Refuses durations that are not whole in a unit, which has so many milliseconds. */
const wholeIn =
  (unit: number, units: string) =>
  (millis: Millis, field: string): Result.Result<Millis, InvalidInput> =>
    millis % unit === 0
      ? Result.succeed(millis)
      : Result.fail(new InvalidInput({ field, problem: `must be whole ${units}` }))

/** Reminders come in seconds, in events and in the store. */
const reminder = Setting.refine(Setting.duration({ least: 1000 }), wholeIn(1000, "seconds"))

const reminders = Setting.refine(Setting.list(reminder), (given, name) =>
  given.length <= maxReminders
    ? Result.succeed(given)
    : Result.fail(
        new InvalidInput({ field: name, problem: `must have at most ${maxReminders} items` }),
      ),
)

/** A hold, of a day at most. */
const hold = Setting.refine(
  Setting.duration({ least: 0, most: 86_400_000 }),
  wholeIn(1, "milliseconds"),
)

/** Settings for announcements. */
export const expiryRules = Setting.object({
  /**
   * How long before the end to publish `membership.expiring`: up to 10 durations in whole seconds. If
   * several are due at once, only the shortest is published. Default: `["7 days", "1 day"]`.
   */
  reminders: Setting.withDefault(reminders, ["7 days", "1 day"]),
  /**
   * Whether a reminder is sent whose time had come when the end date was set, such as that of 7 days for a trial of 7 days
   * (`"send"`), or not (`"skip"`). One that is late by an outage or a new option is sent in either case. Default: `"skip"`.
   */
  late: Setting.withDefault(Setting.oneOf(["skip", "send"]), "skip"),
  /**
   * How long what a change of many sets off is held, so that an undo takes it back: a bulk extension, its undo, the extension
   * of a segment, an import, and a new grace. At most a day; 0 for none. Default: `"10 minutes"`.
   */
  holdAfterBulk: Setting.withDefault(hold, "10 minutes"),
  /** The maximum number of announcements per second in this process. Default: `2000`. */
  announcementsPerSecond: Setting.withDefault(Setting.integer({ most: 100_000 }), 2000),
})

/** Settings for announcements, as a host passes them. */
export interface ExpiryRules extends Setting.InputOf<typeof expiryRules> {}

/** Settings for announcements, as the library uses them. */
export interface ExpirySettings extends Setting.OutputOf<typeof expiryRules> {}

/** The option for announcements. */
export const expiryOptions = Setting.object({
  /**
   * When to announce ends, by `membership.expiring` before and `membership.expired` at the end: once for
   * each end date, in all processes together. `false` announces none. Default: `{}`, or `false` if the
   * store cannot announce ends.
   */
  expiry: Setting.optional<ExpiryRules | false, ExpirySettings | false>(
    Setting.orFalse(expiryRules),
  ),
})

/** The option as a host passes it. */
export interface ExpiryOptions extends Setting.InputOf<typeof expiryOptions> {}

/** The option as the library uses it. */
export interface ExpiriesSettings extends Setting.OutputOf<typeof expiryOptions> {}

/** Returns the settings by which a store's ends are announced; `undefined` if none are. */
export const settingsFor = (
  { expiry: store }: Pick<MembershipStore["Service"], "expiry">,
  { expiry }: ExpiriesSettings,
): ExpirySettings | undefined =>
  store === undefined || expiry === false ? undefined : (expiry ?? Setting.parse(expiryRules))

/** Tells what a change sets off in a project with a grace, as `foresee` does; `undefined` if no ends are announced. */
export type Foreseeing = (
  grace: Millis,
  isSetWithOthers: boolean,
) => Effect.Effect<Foresight | undefined, StoreUnavailable>

export const makeForeseeing = (
  { expiry: store }: Pick<MembershipStore["Service"], "expiry">,
  settings: ExpirySettings | undefined,
): Foreseeing =>
  Effect.fnUntraced(function* (grace, isSetWithOthers) {
    if (settings === undefined || store === undefined) return undefined
    // Loaded for the first dry run.
    const { foresee } = yield* Effect.promise(() => import("./foresight.ts"))
    const now = yield* currentUnixMillis
    const since = (yield* store.watchedSince) ?? now
    return foresee(settings, { grace, isSetWithOthers, sinceFromNow: since - now })
  })

const unsupported = new InvalidInput({
  field: "expiry",
  problem: "must be false: the store of memberships cannot announce ends (its expiry is undefined)",
})

/**
 * Announces memberships' ends until the layer closes, unless the option is false. Fails with
 * `InvalidInput` if the host asks for announcements, and the store does not support them.
 */
export const announcementsLayer = (
  settings: ExpiriesSettings,
): Layer.Layer<never, InvalidInput, MembershipStore> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const store = yield* MembershipStore
      if (settings.expiry && store.expiry === undefined) return yield* unsupported
      const expiry = settingsFor(store, settings)
      if (expiry === undefined || store.expiry === undefined) return
      // Loaded once the library has started.
      const Sweeper = yield* Effect.promise(() => import("./expiry-sweeper.ts"))
      yield* Sweeper.startExpirySweeper(store.expiry, expiry)
    }),
  )
