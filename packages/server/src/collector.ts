/** Sends telemetry to an OpenTelemetry collector, whose failures do not delay the server. */

// While this many requests wait for a response, further data are dropped. With a failing collector, one request
// at a time is enough to find out whether it is back, and its data stay in memory until then.
const maxWaiting = { usual: 8, failing: 1 } as const

/** Makes a response after which the exporter drops its data, and pauses. */
const refused = (): Response => new Response(null, { status: 400 })

/** Makes a `fetch` with a time limit for the whole response, body included. The exporter ignores the body. */
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
 * Makes a `fetch` for an exporter. Logs when the collector begins to fail, and when it is back.
 *
 * @param what - the data, for the log
 * @param timeoutMillis - how long a request may take before its data are dropped
 * @param warn - writes to the log
 */
export const makeCollectorFetch = (
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
    if (waiting >= maxWaiting[isFailing ? "failing" : "usual"]) return refused()
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
