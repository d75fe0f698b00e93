/** Comparisons: contestants take turns in several rounds, and the medians are compared. */

/** One of those that are compared. */
export interface Contestant {
  readonly name: string
  /** Works for about so many seconds; gives the operations done in one second. */
  readonly run: (seconds: number) => Promise<number>
}

/** What a contestant has reached. */
export interface Score {
  readonly name: string
  /** Operations a second: the median of all rounds. */
  readonly rate: number
}

/** The value below which a share of the values lies. */
export const quantile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((one, other) => one - other)[Math.floor(share * (values.length - 1))] ?? NaN

export const median = (values: ReadonlyArray<number>): number => quantile(values, 0.5)

/** Lets the contestants take turns. The machine may be noisy; it is so for all of them. */
export const compare = async (
  contestants: ReadonlyArray<Contestant>,
  { rounds, seconds }: { readonly rounds: number; readonly seconds: number },
): Promise<ReadonlyArray<Score>> => {
  const rates = contestants.map((): Array<number> => [])
  for (let round = 0; round < rounds; round++) {
    for (const [index, { run }] of contestants.entries()) {
      rates[index]?.push(await run(seconds))
    }
  }
  return contestants.map(({ name }, index) => ({ name, rate: median(rates[index] ?? []) }))
}

/** Prints scores, with their ratios to the first. */
export const print = (title: string, scores: ReadonlyArray<Score>): void => {
  const [first] = scores
  console.log(`\n${title}`)
  for (const { name, rate } of scores) {
    const ratio = first === undefined ? NaN : first.rate / rate
    console.log(
      `  ${name.padEnd(44)} ${Math.round(rate).toLocaleString("en").padStart(10)}/s   ${ratio.toFixed(2)}`,
    )
  }
}

/** Runs an operation in so many loops for about so many seconds; gives operations a second. */
export const loops = async (
  count: number,
  seconds: number,
  operation: (loop: number) => Promise<unknown>,
): Promise<number> => {
  const start = performance.now()
  const end = start + 1000 * seconds
  let done = 0
  await Promise.all(
    Array.from({ length: count }, async (_, loop) => {
      while (performance.now() < end) {
        await operation(loop)
        done++
      }
    }),
  )
  return (1000 * done) / (performance.now() - start)
}
