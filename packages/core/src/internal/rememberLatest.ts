/**
 * Remembers the latest result of a pure function of a number. What is printed of an instant is asked
 * for again and again: by every request of the same millisecond, and twice by one that sets a date.
 */
export const rememberLatest = <N extends number, A>(
  f: (argument: N) => A,
): ((argument: N) => A) => {
  let latest: { readonly argument: N; readonly result: A } | undefined
  return (argument) => {
    if (latest?.argument === argument) return latest.result
    const result = f(argument)
    latest = { argument, result }
    return result
  }
}
