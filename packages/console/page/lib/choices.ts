/** The user's choices in this browser. */

const keyOf = (name: string): string => `tenure-console-${name}`

/** Returns a choice; by default, the first. */
export const chosenOf = <A extends string>(
  name: string,
  all: readonly [A, ...ReadonlyArray<A>],
): A => {
  const stored = localStorage.getItem(keyOf(name))
  return all.find((one) => one === stored) ?? all[0]
}

/** Keeps a choice; nothing for the default. */
export const choose = (name: string, value: string, byDefault: string): void => {
  if (value === byDefault) localStorage.removeItem(keyOf(name))
  else localStorage.setItem(keyOf(name), value)
}
