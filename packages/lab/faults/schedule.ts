/** A seed's schedule: which fault hits what, when and for how long. */

import { type Hit, type KindName, kindNames, kinds } from "./kinds.ts"
import { type Random, random } from "./random.ts"

export interface Planned extends Hit {
  readonly kind: KindName
}

/** Faults that happen together, and the calm after them in which everything has to heal. */
type Episode = ReadonlyArray<Planned>

/** What happens in a run. */
export interface Schedule {
  readonly episodes: ReadonlyArray<Episode>
  /** How far each server's clock is off, in milliseconds. */
  readonly clockOffsets: Readonly<Record<string, number>>
  /** Whether a Redis keeps the rate limits. */
  readonly hasLimiter: boolean
  /** How many times longer clients rest than in a short run, so that what is recorded stays small. */
  readonly pace: number
  /** How long all is well after each episode, in milliseconds. */
  readonly calmMillis: number
}

/** What faults can hit. */
export interface Places {
  readonly servers: readonly [string, ...ReadonlyArray<string>]
  /** The servers that may be killed and restarted. */
  readonly restarted: readonly [string, ...ReadonlyArray<string>]
  /** The servers and the host. */
  readonly processes: readonly [string, ...ReadonlyArray<string>]
  readonly projects: readonly [string, ...ReadonlyArray<string>]
  /** Whether there can be a Redis. */
  readonly hasRedis: boolean
}

/** How long all is well after each episode in a short run, in milliseconds. */
export const calmMillis = 4500

// Longer than faults need to heal and anything needs to happen, so that much is judged as without any fault.
const longCalmMillis = 8000

const warmUpMillis = 1000

const restarts: ReadonlySet<KindName> = new Set(["serverKilled", "serverTerminated"])

const targetOf = (kind: KindName, places: Places, choose: Random): string | undefined => {
  switch (kinds[kind].hits) {
    case "server":
      return choose.pick(restarts.has(kind) ? places.restarted : places.servers)
    case "project":
      return choose.pick(places.projects)
    case "link":
      return choose.chance(0.5) ? undefined : choose.pick(places.processes)
    case "database":
    case "limiter":
      return undefined
  }
}

/** Whether two faults cannot happen at the same time, because one leaves the other no place. */
const exclude = (one: Planned, other: Planned): boolean => {
  const first = kinds[one.kind]
  const second = kinds[other.kind]
  if (first.hits !== second.hits) return false
  const meet = one.target === undefined || other.target === undefined || one.target === other.target
  return (
    meet && (one.kind === other.kind || (first.takesDown === true && second.takesDown === true))
  )
}

const plan = (kind: KindName, at: number, places: Places, choose: Random): Planned => {
  const [least, most] = kinds[kind].seconds
  return {
    kind,
    target: targetOf(kind, places, choose),
    at: Math.round(at),
    millis: Math.round(1000 * choose.between(least, most)),
  }
}

const episode = (
  turn: number,
  begin: number,
  lastEnd: number,
  places: Places,
  hasLimiter: boolean,
  choose: Random,
): Episode => {
  // The shortest fault ends in time.
  const names = kindNames.filter((kind) => {
    const { hits, seconds } = kinds[kind]
    return 1000 * seconds[0] <= lastEnd - begin && (hasLimiter || hits !== "limiter")
  })
  const pick = (index: number): KindName => names[index % names.length] ?? "sessionsEnded"
  const faults = [plan(pick(turn), begin, places, choose)]
  // Half the faults happen alone, which shows what each does.
  const company = choose.chance(0.5) ? 0 : 1 + choose.below(3)
  for (let index = 0; index < company; index++) {
    const kind = pick(choose.below(names.length))
    const next = plan(kind, begin + choose.between(0, 1500), places, choose)
    if (!faults.some((fault) => exclude(fault, next))) faults.push(next)
  }
  return faults
    .map((fault) => ({ ...fault, millis: Math.max(0, Math.min(fault.millis, lastEnd - fault.at)) }))
    .filter(({ at }) => at < lastEnd)
    .toSorted((a, b) => a.at - b.at)
}

const longSeconds = 300
const longPace = 8

/**
 * Makes a seed's schedule: the same seed makes the same schedule. Successive seeds lead with
 * successive kinds, so that a few seeds meet every kind. In a long run, only the first server is restarted, so
 * that the others show what time does to them, and a calm also lasts for the slack.
 */
export const schedule = (
  seed: number,
  seconds: number,
  everywhere: Places,
  slackMillis = 0,
): Schedule => {
  const choose = random(seed, "schedule")
  const isLong = seconds >= longSeconds
  const hasLimiter = everywhere.hasRedis && seed % 2 === 0
  const places: Places = isLong
    ? { ...everywhere, restarted: [everywhere.restarted[0]] }
    : everywhere
  const calm = isLong ? longCalmMillis + slackMillis : calmMillis
  const end = 1000 * seconds
  const episodes: Array<Episode> = []
  let begin = warmUpMillis
  let turn = seed * Math.max(1, Math.floor(seconds / 7))
  // The last calm belongs to the run.
  while (begin < end - calm) {
    const next = episode(turn++, begin, end - calm, places, hasLimiter, choose)
    episodes.push(next)
    begin = calm + Math.max(...next.map(({ at, millis }) => at + millis))
  }
  return {
    episodes,
    clockOffsets: Object.fromEntries(
      places.servers.map((name) => [
        name,
        choose.chance(0.3) ? Math.round(choose.between(-100_000, 100_000)) : 0,
      ]),
    ),
    pace: isLong ? longPace : 1,
    calmMillis: calm,
    hasLimiter,
  }
}

const describeFault = ({ at, kind, millis, target }: Planned): string =>
  `${(at / 1000).toFixed(1)} s ${kind}${target === undefined ? "" : ` ${target}`}` +
  (millis === 0 ? "" : ` for ${(millis / 1000).toFixed(1)} s`)

/** Returns a schedule in one line. */
export const describe = ({ clockOffsets, episodes, hasLimiter }: Schedule): string =>
  [
    ...(hasLimiter ? ["limits on Redis"] : []),
    ...Object.entries(clockOffsets)
      .filter(([, millis]) => millis !== 0)
      .map(([name, millis]) => `clock of ${name} ${(millis / 1000).toFixed(0)} s off`),
    ...episodes.flat().map(describeFault),
  ].join(", ")
