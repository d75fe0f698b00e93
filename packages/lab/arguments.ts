/** Numbers and seeds on the command line. */

/** Reads an integer that is not less than another. Throws an error that says what is valid. */
export const parseInteger = (name: string, text: string, least: number): number => {
  const value = Number(text)
  if (text.trim() !== "" && Number.isInteger(value) && value >= least) return value
  throw new Error(`--${name} takes an integer from ${least} on, not "${text}"`)
}

const part = (text: string): ReadonlyArray<number> => {
  const [, from, to = from] = /^(\d+)(?:-(\d+))?$/.exec(text) ?? []
  if (from === undefined || Number(to) < Number(from)) {
    throw new Error(`--seeds takes numbers and ranges such as 1-200, not "${text}"`)
  }
  return Array.from({ length: Number(to) - Number(from) + 1 }, (_, index) => Number(from) + index)
}

/** Reads seeds such as `1-5,9`. Throws an error that says what is valid. */
export const parseSeeds = (text: string): ReadonlyArray<number> => text.split(",").flatMap(part)
