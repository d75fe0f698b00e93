/** Answering requests that have arrived together one right after the other. */

type Immediately = (callback: () => void) => unknown

// Where requests live in contexts of their own, such as in a worker, none may wait for what another
// has begun: it would never end if that other is gone.
const userAgent = String(Reflect.get(globalThis, "navigator")?.userAgent)
const sharesEventLoop = /^(Node\.js|Bun|Deno)\//.test(userAgent)

// The runtime's own, for a test of the host that fakes it has no part in this.
const immediately: Immediately | undefined = sharesEventLoop
  ? Reflect.get(globalThis, "setImmediate")
  : undefined

let next: Promise<void> | undefined

const makeTurn = (): Promise<void> | undefined =>
  immediately &&
  new Promise((resolve) => {
    immediately(() => {
      next = undefined
      resolve()
    })
  })

/**
 * The end of this turn of the event loop, where the runtime has such: what has arrived by then is
 * read. To answer all of that at once takes less processor time than to go from reading to answering
 * with each request, for what each step needs stays in the processor's caches.
 */
export const turnEnd = (): Promise<void> | undefined => (next ??= makeTurn())
