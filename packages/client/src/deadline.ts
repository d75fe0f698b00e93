/** A signal that also aborts when time is up. */

/** Time to wait for something, from each start on. */
export interface Deadline {
  readonly signal: AbortSignal
  /** Starts to wait, in milliseconds. */
  readonly start: (timeout: number) => void
  readonly stop: () => void
  /** Whether time was up. */
  readonly isOver: () => boolean
  /** Aborts the signal. */
  readonly abort: () => void
  /** Stops, and lets go of the other signal. */
  readonly clear: () => void
}

/**
 * Makes a deadline that is not started.
 *
 * @param signal - aborts that of the deadline, too
 */
export const deadline = (signal: AbortSignal | undefined): Deadline => {
  const controller = new AbortController()
  let isOver = false
  let timer: ReturnType<typeof setTimeout> | undefined
  const abort = () => controller.abort(signal?.reason)
  const expire = () => {
    isOver = true
    abort()
  }
  const stop = () => clearTimeout(timer)
  signal?.addEventListener("abort", abort)
  if (signal?.aborted === true) abort()
  return {
    signal: controller.signal,
    start: (timeout) => {
      stop()
      timer = setTimeout(expire, timeout)
    },
    stop,
    isOver: () => isOver,
    abort,
    clear: () => {
      stop()
      signal?.removeEventListener("abort", abort)
    },
  }
}
