/** Finds misspelled environment variables: a variable nobody reads changes nothing. */

/** Variables read by the command `tenure`. A server may have them in its environment, too. */
export const commandVariables = [
  "TENURE_DATABASE_URL",
  "TENURE_ENCRYPTION_KEY",
  "TENURE_PROFILE",
  "TENURE_PROJECT",
  "TENURE_SCHEMA",
  "TENURE_TOKEN",
  "TENURE_URL",
  "TENURE_WEBHOOK_SECRET",
] as const

/** Returns the least number of letters to insert, remove, replace or swap with the next one. */
export const distanceOf = (one: string, other: string): number => {
  let earlier: ReadonlyArray<number> = []
  let before: ReadonlyArray<number> = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let row = 1; row <= one.length; row++) {
    const current = [row]
    for (let column = 1; column <= other.length; column++) {
      const isSame = one[row - 1] === other[column - 1]
      const isSwapped = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1]
      const replaced = (before[column - 1] ?? 0) + (isSame ? 0 : 1)
      const swapped = isSwapped ? (earlier[column - 2] ?? 0) + 1 : replaced
      const shifted = Math.min(before[column] ?? 0, current[column - 1] ?? 0) + 1
      current.push(Math.min(replaced, swapped, shifted))
    }
    earlier = before
    before = current
  }
  return before[other.length] ?? 0
}

// Singular and plural are one letter apart, except for these.
const wordsOf = (name: string): ReadonlyArray<string> =>
  name.split("_").map((word) => word.replace(/IES$/, "Y"))

// Short words are near to many others: REDIS_SSL and SASS_PATH are no misspellings.
const isNear = (name: string, known: string): boolean => {
  if (Math.abs(name.length - known.length) > 4) return false
  const words = wordsOf(name)
  const knownWords = wordsOf(known)
  if (words.length !== knownWords.length) return distanceOf(name, known) <= 1
  const distances = words.map((word, index) => distanceOf(word, knownWords[index] ?? ""))
  const isClose = distances.every(
    (distance, index) => distance <= ((knownWords[index] ?? "").length < 5 ? 1 : 2),
  )
  const total = distances.reduce((sum, distance) => sum + distance, 0)
  return isClose && total <= (Math.min(name.length, known.length) < 8 ? 1 : 2)
}

// Mesos sets PORT0 and PORTS, and Kubernetes names service hosts and ports.
const ofPlatform = /^PORTS?\d*$|_(?:SERVICE_HOST|PORT)(?:_|$)/

const longestName = 100

// With more misspelled variables, the operator corrects these first.
const maxNamed = 10

/** Returns whether a name is probably meant to be a known one. `family` is its beginning, if only Tenure has it. */
const mayMean = (name: string, family: string | undefined, known: string): boolean =>
  (family !== undefined && known.startsWith(family)) || isNear(name, known)

const nearestOf = (name: string, known: ReadonlyArray<string>): string | undefined => {
  const distances = known.map((one) => distanceOf(name, one))
  return known[distances.indexOf(Math.min(...distances))]
}

/**
 * Finds unknown variables named almost like a known one, or belonging to a family.
 * @param families - prefixes only Tenure's variables have, such as `TENURE_`
 * @returns a sentence for each of the first ten, with the nearest known name, and one with the number
 *   of others
 */
export const describeMisspelled = (
  names: ReadonlyArray<string>,
  known: ReadonlyArray<string>,
  families: ReadonlyArray<string>,
): ReadonlyArray<string> => {
  const familyOf = (name: string) => families.find((beginning) => name.startsWith(beginning))

  const isMisspelled = (name: string): boolean => {
    if (known.includes(name) || ofPlatform.test(name) || name.length > longestName) return false
    const family = familyOf(name)
    return known.some((one) => mayMean(name, family, one))
  }

  const misspelled = names.filter(isMisspelled)
  const named = misspelled.slice(0, maxNamed).map((name) => {
    const family = familyOf(name)
    const nearest = nearestOf(
      name,
      known.filter((one) => mayMean(name, family, one)),
    )
    return `There is no variable ${name}. Did you mean ${nearest}?`
  })
  const more = misspelled.length - named.length
  return more === 0 ? named : [...named, `Other variables that are probably misspelled: ${more}.`]
}
