/** Waiting. */

/** The longest time that timers take, in milliseconds. */
export const longestTime = 2_147_483_647

/**
 * Waits.
 *
 * @param millis - at most `longestTime`
 * @param signal - ends the wait: the promise rejects with its reason
 */
export const sleep = (millis: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort)
      resolve()
    }, millis)
    signal?.addEventListener("abort", abort)
    if (signal?.aborted === true) abort()
  })
