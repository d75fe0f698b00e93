/**
 * A fair semaphore: no owner holds more than half of the places, and waiting owners take turns. So one busy
 * project does not block the others.
 */

import { invariant } from "@tenure/core/internal"
import * as Effect from "effect/Effect"

// Beyond this, a caller would wait longer than a client does.
const maxWaiting = 10_000

/** A number of places for effects to run in. */
export interface FairSemaphore {
  /** Runs an effect in a place when it is the owner's turn. Fails if too many wait. */
  readonly take: <A, E, R>(
    owner: string,
    effect: Effect.Effect<A, E, R>,
  ) => Effect.Effect<A, E | "crowded", R>
  /** The number of places that are taken. */
  readonly taken: () => number
  /** The number of waiting callers. */
  readonly waiting: () => number
}

interface Owner {
  held: number
  readonly waiting: Array<() => void>
}

/** Makes a semaphore with this many places. */
export const makeFairSemaphore = (places: number): FairSemaphore => {
  const maxHeld = Math.ceil(places / 2)
  // Ordered by turn.
  const owners = new Map<string, Owner>()
  let free = places
  let waiting = 0

  const ownerOf = (name: string): Owner => {
    const owner = owners.get(name) ?? { held: 0, waiting: [] }
    owners.set(name, owner)
    return owner
  }

  const hold = (owner: Owner): void => {
    invariant(free > 0, "a place was taken although none was free")
    owner.held++
    free--
  }

  /** Admits waiting callers while places are free, one owner after the other. */
  const admit = (): void => {
    for (const [name, owner] of owners) {
      if (free === 0 || waiting === 0) return
      const admitted = owner.held < maxHeld ? owner.waiting.shift() : undefined
      if (admitted === undefined) continue
      waiting--
      hold(owner)
      // Moved behind the others, so that the loop returns here after them.
      owners.delete(name)
      owners.set(name, owner)
      admitted()
    }
  }

  const forgetIdle = (name: string, owner: Owner): void => {
    if (owner.held === 0 && owner.waiting.length === 0) owners.delete(name)
  }

  const release = (name: string, owner: Owner): void => {
    invariant(owner.held > 0, "an owner left a place that it did not hold")
    owner.held--
    free++
    forgetIdle(name, owner)
    admit()
  }

  const wait = (name: string, owner: Owner): Effect.Effect<void> =>
    Effect.callback((resume) => {
      let isAdmitted = false
      const admitted = (): void => {
        isAdmitted = true
        resume(Effect.void)
      }
      owner.waiting.push(admitted)
      waiting++
      return Effect.sync(() => {
        // The place may have been granted at the moment of the interruption.
        if (isAdmitted) return release(name, owner)
        const index = owner.waiting.indexOf(admitted)
        invariant(index !== -1, "a caller stopped waiting who was not waiting")
        owner.waiting.splice(index, 1)
        waiting--
        forgetIdle(name, owner)
      })
    })

  return {
    take: <A, E, R>(name: string, effect: Effect.Effect<A, E, R>) =>
      Effect.uninterruptibleMask((restore) =>
        // A free place is taken in the step that finds it: a fiber may yield between two effects.
        Effect.suspend((): Effect.Effect<A, E | "crowded", R> => {
          const owner = ownerOf(name)
          const held = Effect.suspend(() =>
            Effect.ensuring(
              restore(effect),
              Effect.sync(() => release(name, owner)),
            ),
          )
          if (free > 0 && owner.held < maxHeld) {
            hold(owner)
            return held
          }
          if (waiting < maxWaiting) return Effect.andThen(restore(wait(name, owner)), held)
          forgetIdle(name, owner)
          return Effect.fail("crowded")
        }),
      ),
    taken: () => places - free,
    waiting: () => waiting,
  }
}
