/** Comparisons: contestants take turns in several rounds, and the medians are compared. */

/** A contestant's work in one round. */
export interface Sample {
  /** Operations a second. */
  readonly rate: number
  /** Microseconds on a processor for each operation, where that was measured. */
  readonly cpu: number
}

/** What is compared. */
export interface Contestant {
  readonly name: string
  /** Works for about this many seconds. */
  readonly run: (seconds: number) => Promise<Sample>
}

/** A contestant's medians in all rounds. */
export interface Score extends Sample {
  readonly name: string
}

/** Tenure, and the programs that it is compared with. */
export interface Field<A> {
  readonly tenure: A
  readonly peers: ReadonlyArray<A>
}

/** How long to measure. */
export interface Rounds {
  readonly rounds: number
  readonly seconds: number
}

/** Shorter rounds, for work in one process, which settles soon. */
export const brief = ({ rounds, seconds }: Rounds): Rounds => ({ rounds, seconds: seconds / 4 })

/** The value below which a share lies. */
export const quantile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((one, other) => one - other)[Math.floor(share * (values.length - 1))] ?? NaN

export const median = (values: ReadonlyArray<number>): number => quantile(values, 0.5)

const scoreOf = (name: string, samples: ReadonlyArray<Sample>): Score => ({
  name,
  rate: median(samples.map(({ rate }) => rate)),
  cpu: median(samples.map(({ cpu }) => cpu)),
})

/** Lets contestants take turns. If the machine is noisy, it is so for all. */
export const takeTurns = async (
  contestants: ReadonlyArray<Contestant>,
  { rounds, seconds }: Rounds,
): Promise<ReadonlyArray<Score>> => {
  const turns = contestants.map((one) => ({ ...one, samples: new Array<Sample>() }))
  // Every contestant warms up first, so that compilation is not measured.
  for (const { run } of turns) await run(seconds)
  for (let round = 0; round < rounds; round++) {
    for (const { run, samples } of turns) samples.push(await run(seconds))
  }
  return turns.map(({ name, samples }) => scoreOf(name, samples))
}

/** Lets Tenure and its peers take turns. */
export const compare = async (
  { peers, tenure }: Field<Contestant>,
  rounds: Rounds,
): Promise<Field<Score>> => {
  const [first, ...others] = await takeTurns([tenure, ...peers], rounds)
  return { tenure: first ?? scoreOf(tenure.name, []), peers: others }
}

/** A ratio with its bounds at 95 % confidence. */
export interface Ratio {
  readonly median: number
  readonly least: number
  readonly most: number
}

/** Computes the median and its confidence interval, for any distribution. */
export const ratioOf = (ratios: ReadonlyArray<number>): Ratio => {
  const sorted = ratios.toSorted((one, other) => one - other)
  // How many values are below the median is distributed binomially: this many, but for 2.5 %.
  const below = Math.max(0, Math.floor((sorted.length - 1.96 * Math.sqrt(sorted.length)) / 2))
  return {
    median: median(sorted),
    least: sorted[below] ?? NaN,
    most: sorted[sorted.length - 1 - below] ?? NaN,
  }
}

/**
 * Compares two contestants' rates in many short pairs, each in the other order than the one before:
 * noise that lasts longer than a pair is noise for both.
 */
export const inPairs = async (
  one: Contestant,
  other: Contestant,
  { rounds, seconds }: Rounds,
): Promise<Ratio> => {
  const ratios: Array<number> = []
  for (const { run } of [one, other]) await run(10 * seconds)
  for (let round = 0; round < rounds; round++) {
    const rates = new Map<Contestant, number>()
    for (const contestant of round % 2 === 0 ? [one, other] : [other, one]) {
      rates.set(contestant, (await contestant.run(seconds)).rate)
    }
    ratios.push((rates.get(one) ?? NaN) / (rates.get(other) ?? NaN))
  }
  return ratioOf(ratios)
}

/** Runs something that tells how many operations it has done, and measures it in this process. */
export const sample = async (work: () => Promise<number>): Promise<Sample> => {
  const start = performance.now()
  const cpu = process.cpuUsage()
  const done = await work()
  const { system, user } = process.cpuUsage(cpu)
  return { rate: (1000 * done) / (performance.now() - start), cpu: (system + user) / done }
}

/** Runs an operation in this many loops for about this many seconds. */
export const loops = (
  count: number,
  seconds: number,
  operation: (loop: number) => Promise<unknown>,
): Promise<Sample> =>
  sample(async () => {
    const end = performance.now() + 1000 * seconds
    let done = 0
    const loop = async (_: unknown, index: number) => {
      while (performance.now() < end) {
        await operation(index)
        done++
      }
    }
    await Promise.all(Array.from({ length: count }, loop))
    return done
  })

/** Runs batches for about this many seconds, so that reading the clock costs nothing. */
export const batches = (size: number, seconds: number, batch: () => unknown): Promise<Sample> =>
  sample(async () => {
    const end = performance.now() + 1000 * seconds
    let done = 0
    do {
      await batch()
      done += size
    } while (performance.now() < end)
    return done
  })
