/** Numbers of things. */

/** Writes how many there are: `1 check`, `2 checks`. */
export const counted = (count: number, one: string, several = `${one}s`): string =>
  `${count} ${count === 1 ? one : several}`
