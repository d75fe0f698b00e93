/** Answering requests that have arrived together one right after the other. */

declare const setImmediate: ((callback: () => void) => unknown) | undefined

let next: Promise<void> | undefined

const makeTurn = (): Promise<void> | undefined =>
  typeof setImmediate === "function"
    ? new Promise((resolve) => {
        setImmediate(() => {
          next = undefined
          resolve()
        })
      })
    : undefined

/**
 * The end of this turn of the event loop, where the runtime has such: what has arrived by then is
 * read. To answer all of that at once takes less processor time than to go from reading to answering
 * with each request, for what each step needs stays in the processor's caches.
 */
export const turnEnd = (): Promise<void> | undefined => (next ??= makeTurn())
