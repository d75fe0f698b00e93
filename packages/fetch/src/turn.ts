/** Answers requests that arrive together one right after the other. */

type Immediately = (callback: () => void) => unknown

// In a runtime that gives each request its own context, such as a worker, a request must not wait for
// a timer of another request, which may be gone.
const userAgent = String(Reflect.get(globalThis, "navigator")?.userAgent)
const sharesEventLoop = /^(Node\.js|Bun|Deno)\//.test(userAgent)

// Kept, because a host's tests may replace the global function.
const immediately: Immediately | undefined = sharesEventLoop
  ? Reflect.get(globalThis, "setImmediate")
  : undefined

// A server on Node stops reading a connection once enough of its responses wait to be sent. It must
// not read on and on while requests wait here instead.
const mostWaiting = 64

let next: Promise<void> | undefined
let waiting = 0

const makeTurn = (): Promise<void> | undefined =>
  immediately &&
  new Promise((resolve) => {
    immediately(() => {
      next = undefined
      waiting = 0
      resolve()
    })
  })

/**
 * Waits until the end of this turn of the event loop, if the runtime has one. By then everything that
 * has arrived is read.
 *
 * Reading all requests and then answering all takes less processor time than finishing each in turn,
 * because what each step needs stays in the processor's caches. At most 64 requests wait; the others
 * go on at once.
 */
export const turnEnd = (): Promise<void> | undefined =>
  ++waiting > mostWaiting ? undefined : (next ??= makeTurn())
