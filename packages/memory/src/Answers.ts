/** What requests with an idempotency key were answered. */

import { IdempotencyMismatch, type Once, type Replayed, replayed } from "@tenure/core/Once"
import type { ProjectId } from "@tenure/core/Project"
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** An answer, and the digest of its request. */
interface Answer {
  readonly projectId: ProjectId | undefined
  readonly fingerprint: string
  readonly replayed: Replayed
}

/** The answers of each owner, by idempotency key. */
type ByOwner = Map<string, Map<string, Answer>>

/** Bounds of what is kept. */
export interface Bounds {
  /** How many answers of each owner are kept. */
  readonly perOwner: number
  /** How long answers are kept, in milliseconds, up to twice as long if there is room. */
  readonly millis: number
}

/** The answers of all owners. */
export interface Answers {
  /** Returns the answer to a request, or fails if the key came with another request. */
  readonly find: (once: Once) => Effect.Effect<Replayed | undefined, IdempotencyMismatch>
  /**
   * Makes a change in one synchronous step, unless it was made before. A change without a key is made.
   *
   * @param projectId - the project with which the answer is forgotten, if there is one
   * @param answerOf - returns what an answer needs of what the change returns
   */
  readonly change: <A, E>(
    once: Once | undefined,
    projectId: ProjectId | undefined,
    change: Effect.Effect<A, E>,
    answerOf?: (value: A) => string,
  ) => Effect.Effect<A | Replayed, E | IdempotencyMismatch>
  /** Forgets the answers of a project that was deleted. */
  readonly forget: (projectId: ProjectId) => void
}

/** Makes an empty set of answers. They live in two generations, as the entries of an `LruCache` do. */
export const make = ({ millis, perOwner }: Bounds): Answers => {
  const width = Math.max(1, Math.floor(perOwner / 2))
  let young: ByOwner = new Map()
  let old: ByOwner = new Map()
  let since = -Infinity

  const age = (now: number): void => {
    if (now - since < millis) return
    old = now - since < 2 * millis ? young : new Map()
    young = new Map()
    since = now
  }

  const find = ({ fingerprint, key, owner }: Once, now: number) => {
    age(now)
    const known = young.get(owner)?.get(key) ?? old.get(owner)?.get(key)
    return known === undefined || known.fingerprint === fingerprint
      ? Effect.succeed(known?.replayed)
      : Effect.fail(new IdempotencyMismatch())
  }

  const keep = (
    { fingerprint, key, owner }: Once,
    projectId: ProjectId | undefined,
    answer: string,
  ): void => {
    const own = young.get(owner)
    if (own === undefined || own.size >= width) young.set(owner, new Map())
    if (own !== undefined && own.size >= width) old.set(owner, own)
    young.get(owner)?.set(key, { projectId, fingerprint, replayed: replayed(answer) })
  }

  return {
    find: (once) => Effect.flatMap(Clock.currentTimeMillis, (now) => find(once, now)),

    change: <A, E>(
      once: Once | undefined,
      projectId: ProjectId | undefined,
      change: Effect.Effect<A, E>,
      answerOf: (value: A) => string = () => "",
    ) => {
      if (once === undefined) return change
      const step = Effect.gen(function* () {
        const known = yield* find(once, yield* Clock.currentTimeMillis)
        if (known !== undefined) return known
        const value = yield* change
        keep(once, projectId, once.answer ?? answerOf(value))
        return value
      })
      // Nothing comes between the search for the key and the change.
      return Effect.contextWith((context: Context.Context<never>) =>
        Effect.runSyncExitWith(context)(step),
      )
    },

    forget: (projectId) => {
      for (const answers of [...young.values(), ...old.values()]) {
        for (const [key, answer] of answers) if (answer.projectId === projectId) answers.delete(key)
      }
    },
  }
}
