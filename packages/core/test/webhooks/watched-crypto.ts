/**
 * The real WebCrypto, and a wait for its operations: they run on threads of their own, which no number
 * of turns of the event loop waits for.
 */

import * as WebCrypto from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"

const running = new Set<Promise<unknown>>()

const watch = (operation: Promise<unknown>): void => {
  running.add(operation)
  const end = () => void running.delete(operation)
  operation.then(end, end)
}

const watched = <A extends object>(target: A): A =>
  new Proxy(target, {
    get: (_, name) => {
      const member: unknown = Reflect.get(target, name)
      if (typeof member === "object" && member !== null) return watched(member)
      if (typeof member !== "function") return member
      return (...args: ReadonlyArray<unknown>): unknown => {
        const result: unknown = Reflect.apply(member, target, args)
        if (result instanceof Promise) watch(result)
        return result
      }
    },
  })

export const watchedCrypto = WebCrypto.layer(watched(globalThis.crypto))

/** Whether operations are running. */
export const isBusy = (): boolean => running.size > 0

/** Waits for the operations that are running. */
export const allEnded = Effect.promise(() => Promise.allSettled(running))
