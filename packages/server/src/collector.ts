/** The collector of OpenTelemetry, as the exporters see it: one that fails holds up nothing. */

// While so many requests wait for an answer, what else is to be sent is dropped. One at a time finds out
// whether a collector that fails is back: what is to be repeated stays in memory until then.
const mostWaiting = { usual: 8, failing: 1 } as const

/** An answer after which the exporter drops what it has, and pauses. */
const refused = (): Response => new Response(null, { status: 400 })

/** A `fetch` of the whole answer, in some milliseconds. The exporter needs no more than its head. */
const inTime =
  (millis: number): typeof fetch =>
  async (input, init) => {
    const timeout = AbortSignal.timeout(millis)
    const { signal } = init ?? {}
    const response = await fetch(input, {
      ...init,
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    })
    await response.arrayBuffer()
    return new Response(null, response)
  }

const reasonOf = (fault: unknown): string => {
  const reason = fault instanceof Error ? (fault.cause ?? fault) : fault
  return reason instanceof Error ? reason.message : String(reason)
}

/**
 * Makes a `fetch` for an exporter. Logs when what it sends is no longer taken, and when it is again.
 *
 * @param what - what it sends, for the log
 * @param timeoutMillis - what cannot be sent in this time is dropped
 * @param warn - writes to the log
 */
export const make = (
  what: string,
  timeoutMillis: number,
  warn: (message: string, cause?: string) => void,
): typeof fetch => {
  const ask = inTime(timeoutMillis)
  let waiting = 0
  let isFailing = false

  const answered = (fault: string | undefined): void => {
    const fails = fault !== undefined
    if (fails === isFailing) return
    isFailing = fails
    if (fails) warn(`The collector does not take ${what}, which are dropped meanwhile`, fault)
    else warn(`The collector takes ${what} again`)
  }

  return async (input, init) => {
    if (waiting >= mostWaiting[isFailing ? "failing" : "usual"]) return refused()
    waiting++
    try {
      const response = await ask(input, init)
      answered(response.ok ? undefined : `status ${response.status}`)
      return response
    } catch (fault) {
      answered(reasonOf(fault))
      throw fault
    } finally {
      waiting--
    }
  }
}
