/**
 * Caches the latest result of a pure function of a number. Text for the current instant is formatted
 * repeatedly: by each request of the same millisecond, and twice by a request that sets an end date.
 */
export const memoizeLast = <N extends number, A>(f: (argument: N) => A): ((argument: N) => A) => {
  let latest: { readonly argument: N; readonly result: A } | undefined
  return (argument) => {
    if (latest?.argument === argument) return latest.result
    const result = f(argument)
    latest = { argument, result }
    return result
  }
}
