/**
 * A semaphore that is fair to owners: none holds more than half of the places, and those that wait take turns. So one
 * busy project does not block the others.
 */

import * as Effect from "effect/Effect"

// More callers than this wait for more than a client can be expected to.
const mostWaiting = 10_000

/** Places that effects run in. */
export interface FairSemaphore {
  /** Runs an effect in a place, when it is the owner's turn. Fails if too many wait. */
  readonly take: <A, E, R>(
    owner: string,
    effect: Effect.Effect<A, E, R>,
  ) => Effect.Effect<A, E | "crowded", R>
  /** How many places are taken. */
  readonly taken: () => number
  /** How many callers wait. */
  readonly waiting: () => number
}

interface Owner {
  held: number
  readonly waiting: Array<() => void>
}

/** Makes places. */
export const makeFairSemaphore = (places: number): FairSemaphore => {
  const mostHeld = Math.ceil(places / 2)
  // In the order of their turns.
  const owners = new Map<string, Owner>()
  let free = places
  let waiting = 0

  const ownerOf = (name: string): Owner => {
    const owner = owners.get(name) ?? { held: 0, waiting: [] }
    owners.set(name, owner)
    return owner
  }

  const hold = (owner: Owner): void => {
    owner.held++
    free--
  }

  /** Admits waiting statements while places are free, one owner after the other. */
  const admit = (): void => {
    for (const [name, owner] of owners) {
      if (free === 0 || waiting === 0) return
      const admitted = owner.held < mostHeld ? owner.waiting.shift() : undefined
      if (admitted === undefined) continue
      waiting--
      hold(owner)
      // Behind the others: the loop comes here again after them.
      owners.delete(name)
      owners.set(name, owner)
      admitted()
    }
  }

  const forgetIdle = (name: string, owner: Owner): void => {
    if (owner.held === 0 && owner.waiting.length === 0) owners.delete(name)
  }

  const release = (name: string, owner: Owner): void => {
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
        // The place may have come at the moment of the interruption.
        if (isAdmitted) return release(name, owner)
        owner.waiting.splice(owner.waiting.indexOf(admitted), 1)
        waiting--
        forgetIdle(name, owner)
      })
    })

  const enter = (name: string, owner: Owner): Effect.Effect<void, "crowded"> => {
    if (free > 0 && owner.held < mostHeld) return Effect.sync(() => hold(owner))
    return waiting < mostWaiting ? wait(name, owner) : Effect.fail("crowded")
  }

  return {
    take: (name, effect) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.suspend(() => {
          const owner = ownerOf(name)
          return Effect.flatMap(restore(enter(name, owner)), () =>
            Effect.ensuring(
              restore(effect),
              Effect.sync(() => release(name, owner)),
            ),
          )
        }),
      ),
    taken: () => places - free,
    waiting: () => waiting,
  }
}
