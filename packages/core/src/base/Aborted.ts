/** Signals of hosts, as effects. */

import * as Effect from "effect/Effect"

/** Waits until a signal aborts. Without a signal, waits forever. */
export const aborted = (signal: AbortSignal | undefined): Effect.Effect<void> =>
  signal === undefined
    ? Effect.never
    : Effect.callback((resume) => {
        const abort = () => resume(Effect.void)
        if (signal.aborted) return abort()
        signal.addEventListener("abort", abort, { once: true })
        return Effect.sync(() => signal.removeEventListener("abort", abort))
      })
