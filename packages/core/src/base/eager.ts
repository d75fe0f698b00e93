/**
 * Steps: effects that need nothing but the clock to begin.
 *
 * What a request does in memory waits for nothing. Whoever has the clock begins such a step himself,
 * and gets the exit of one that does not wait. `Effect.flatMapEager`, and others that end in `Eager`,
 * continue an exit at once, so that no fiber interprets what follows. Everything else they continue in
 * a fiber, as `Effect.flatMap` does.
 *
 * A step is an effect like any other: nothing happens before it runs, and it can run again.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Effectable from "effect/Effectable"
import * as Exit from "effect/Exit"

type Begin<A, E, R> = (clock: Clock.Clock) => Effect.Effect<A, E, R>

class Step<A, E, R> extends Effectable.Class<A, E, R> {
  readonly begin: Begin<A, E, R>
  constructor(begin: Begin<A, E, R>) {
    super()
    this.begin = begin
  }
  override asEffect(): Effect.Effect<A, E, R> {
    return Clock.clockWith(this.begin)
  }
}

const isStep = <A, E, R>(effect: Effect.Effect<A, E, R>): effect is Step<A, E, R> =>
  effect instanceof Step

/** Makes a step of a function that begins it, by the clock of whoever runs it. */
export const suspendEager = <A, E, R>(begin: Begin<A, E, R>): Effect.Effect<A, E, R> =>
  new Step(begin)

/** Begins an effect, if it is a step. What it throws is a defect. */
export const runEager = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  clock: Clock.Clock,
): Effect.Effect<A, E, R> => {
  if (!isStep(effect)) return effect
  try {
    return effect.begin(clock)
  } catch (defect) {
    return Effect.die(defect)
  }
}

/** Tells whether an effect is an exit: a step that was begun, and did not wait. */
export const isSettled = <A, E, R>(effect: Effect.Effect<A, E, R>): effect is Exit.Exit<A, E> =>
  Exit.isExit(effect)

type Effects = Readonly<Record<string, Effect.Effect<unknown, unknown>>>

/** Combines effects as `Effect.all` does, and at once if all of them are exits. */
export function allEager<const Given extends Effects>(
  effects: Given,
): Effect.Effect<
  { readonly [Name in keyof Given]: Effect.Success<Given[Name]> },
  Effect.Error<Given[keyof Given]>
>
export function allEager(effects: Effects): Effect.Effect<unknown, unknown> {
  const values: Record<string, unknown> = {}
  // Three times as fast as a list of entries.
  for (const name in effects) {
    const effect = effects[name]
    if (effect === undefined || !isSettled(effect)) return Effect.all(effects)
    if (Exit.isFailure(effect)) return effect
    values[name] = effect.value
  }
  return Effect.succeed(values)
}
