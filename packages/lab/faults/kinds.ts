/** The kinds of faults: what each hits, how long it lasts, what it may disturb, and how it is caused. */

import { random } from "./random.ts"
import type { Database } from "./world/database.ts"
import type { World } from "./world/world.ts"

/**
 * What a fault hits: a server, the link between a server and the database, a project, everything, or the Redis that
 * keeps the rate limits in some runs.
 */
type Target = "server" | "link" | "project" | "database" | "limiter"

/** When and where a fault happens. */
export interface Hit {
  readonly kind: string
  /** The server or project that it hits; all servers if missing. */
  readonly target: string | undefined
  /** When it begins, in milliseconds after the run began. */
  readonly at: number
  readonly millis: number
}

type End = () => Promise<void> | void

/** Begins a fault. Returns what ends it. */
type Cause = (world: World, hit: Hit) => Promise<End>

export interface Kind {
  readonly title: string
  readonly hits: Target
  /** The shortest and the longest time that it lasts, in seconds. */
  readonly seconds: readonly [least: number, most: number]
  readonly cause: Cause
  /**
   * Whether everything works again soon after its beginning already, because what remains need not
   * disturb anybody. Otherwise soon after its end.
   */
  readonly healsFromStart?: boolean
  /** Whether the process or the database is gone meanwhile, so that no second such fault can hit it. */
  readonly takesDown?: boolean
}

const nothing: End = () => {}

/** What a fault does, and to what. */
type Effect = Pick<Kind, "cause" | "hits">

const down = (effect: Effect) => ({ ...effect, takesDown: true }) as const

const idempotency = { seconds: [0, 0], healsFromStart: true } as const

type Step = () => Promise<End | void> | void

/** Does something with parts of the world, and ends that. */
const on =
  <A>(hits: Target, partsOf: (world: World, hit: Hit) => ReadonlyArray<A>) =>
  (
    stepsOf: (part: A, hit: Hit) => readonly [begin: Step, end?: () => Promise<void> | void],
  ): Effect => ({
    hits,
    cause: async (world, hit) => {
      const ends = await Promise.all(
        partsOf(world, hit).map(async (part) => {
          const [begin, end = nothing] = stepsOf(part, hit)
          return (await begin()) ?? end
        }),
      )
      return async () => {
        await Promise.all(ends.map((end) => end()))
      }
    },
  })

const onServer = on("server", ({ servers }, { target = "" }) => {
  const server = servers.get(target)
  if (server === undefined) throw new Error(`there is no server ${target}`)
  return [server]
})

const onLinks = on("link", ({ links }, { target }) =>
  [...links].flatMap(([name, link]) => (target === undefined || name === target ? [link] : [])),
)

const onDatabase = on("database", ({ database }) => [database])

const onLimiter = on("limiter", ({ limiter }) => (limiter === undefined ? [] : [limiter]))

/** Does something with the database, unless it is down. */
const ifUp = (begin: (database: Database, hit: Hit) => Promise<End | void>): Effect =>
  onDatabase((database, hit) => [() => begin(database, hit).catch(() => {})])

/** Runs a locking statement in a transaction that stays open. */
const locking = (hits: Target, statement: string): Pick<Kind, "cause" | "hits" | "seconds"> => ({
  hits,
  seconds: [0.5, 6],
  cause: async ({ database }, { target }) => {
    try {
      const session = await database.connect()
      // Others may hold the lock for longer than the fault lasts.
      session
        .query("BEGIN")
        .then(() => session.query(statement, target === undefined ? [] : [target]))
        .catch(() => {})
      return session.close
    } catch {
      // The database is down, and so is nothing locked.
      return nothing
    }
  },
})

const hourMillis = 3_600_000

/** How far a clock jumps, which is the same whenever the seed runs: ahead, or back. */
const jumpOf = ({ at, kind, millis }: Hit): number => {
  const choose = random(at, kind, millis)
  const most = choose.chance(0.5) ? hourMillis : -hourMillis
  return kind === "databaseClockJumped" ? most : Math.round(most * choose.next())
}

/** A fault has its own delay, the same whenever the seed runs. */
const delayOf = ({ at, kind, millis }: Hit): number => random(at, kind, millis).between(20, 100)

const table = {
  serverKilled: {
    title: "a server is killed (`kill -9`) and started again",
    seconds: [0.1, 1],
    ...down(onServer(({ kill, start }) => [kill, start])),
  },
  serverStopped: {
    title: "a server stands still (SIGSTOP)",
    seconds: [0.3, 3],
    ...down(onServer(({ proceed, standStill }) => [standStill, proceed])),
  },
  serverTerminated: {
    title: "a server is restarted (SIGTERM)",
    seconds: [0.1, 1],
    ...down(onServer(({ start, terminate }) => [() => terminate().then(() => {}), start])),
  },
  databaseKilled: {
    title: "the database crashes and is started again",
    seconds: [0.2, 2],
    ...down(onDatabase(({ crash, resume }) => [crash, resume])),
  },
  databaseRestarted: {
    title: "the database is restarted",
    seconds: [0.2, 2],
    ...down(onDatabase(({ halt, resume }) => [halt, resume])),
  },
  databaseStopped: {
    title: "the database stands still (SIGSTOP)",
    seconds: [0.3, 3],
    ...down(onDatabase(({ proceed, standStill }) => [standStill, proceed])),
  },
  databaseAway: {
    title: "the database is away for about ten seconds",
    seconds: [10, 10],
    ...down(onDatabase(({ halt, resume }) => [halt, resume])),
  },
  sessionKilled: {
    title: "a process of the database is killed (`kill -9`), and all others begin anew",
    ...idempotency,
    ...ifUp(({ killSession }) => killSession()),
  },
  sessionsEnded: {
    title: "an administrator ends all sessions of the database",
    ...idempotency,
    ...ifUp(({ endSessions }) => endSessions()),
  },
  databaseCrowded: {
    title: "other programs take all connections that the database allows",
    seconds: [0.5, 3],
    ...ifUp(({ crowd }) => crowd()),
  },
  connectionsReset: {
    title: "all connections to the database are reset once",
    ...idempotency,
    ...onLinks(({ reset }) => [reset]),
  },
  connectionsSilent: {
    title: "connections to the database die in silence, new ones work",
    ...idempotency,
    ...onLinks(({ silence }) => [silence]),
  },
  linkRefused: {
    title: "the database is cut off, connections are refused",
    seconds: [0.2, 3],
    ...down(onLinks(({ accept, refuse }) => [refuse, accept])),
  },
  linkStalled: {
    title: "the database is cut off in silence",
    seconds: [0.2, 3],
    ...down(onLinks(({ change, clear }) => [() => change({ isStalled: true }), clear])),
  },
  // Each direction takes half the time.
  linkDelayed: {
    title: "the database is 40 to 200 ms away",
    seconds: [2, 6],
    healsFromStart: true,
    ...onLinks(({ change, clear }, hit) => [() => change({ delayMillis: delayOf(hit) }), clear]),
  },
  linkThrottled: {
    title: "the link to the database carries 64 KiB/s",
    seconds: [1, 4],
    ...onLinks(({ change, clear }) => [() => change({ bytesPerSecond: 2 ** 16 }), clear]),
  },
  projectLocked: {
    title: "another program locks a project",
    ...locking("project", "SELECT 1 FROM tenure.projects WHERE id = $1 FOR UPDATE"),
  },
  membersLocked: {
    title: "another program locks the memberships of a project",
    ...locking(
      "project",
      `SELECT 1 FROM tenure.memberships m JOIN tenure.projects p ON p.number = m.project_number
       WHERE p.id = $1 FOR UPDATE OF m`,
    ),
  },
  tableLocked: {
    title: "another program locks the table of memberships",
    ...locking("database", "LOCK TABLE tenure.memberships IN ACCESS EXCLUSIVE MODE"),
  },
  statementsStopped: {
    title: "sessions of the database stand still within statements, up to 0.3 s each (SIGSTOP)",
    seconds: [2, 6],
    ...ifUp(({ stopStatements }, { at, kind, millis }) => stopStatements(random(at, kind, millis))),
  },
  databaseClockJumped: {
    title: "the clock of the database jumps by an hour, and back",
    seconds: [0.5, 6],
    ...onDatabase(({ shiftClock }, hit) => [() => shiftClock(jumpOf(hit)), () => shiftClock(0)]),
  },
  serverClockJumped: {
    title: "the clock of a server jumps by up to an hour, and back",
    seconds: [0.5, 4],
    ...onServer(({ shiftClock }, hit) => [() => shiftClock(jumpOf(hit)), () => shiftClock(0)]),
  },
  limiterKilled: {
    title: "the Redis of the rate limits is killed and started again",
    seconds: [0.2, 5],
    ...down(onLimiter(({ kill, start }) => [kill, start])),
  },
  limiterSilent: {
    title: "the Redis of the rate limits is cut off in silence",
    seconds: [0.2, 5],
    ...down(onLimiter(({ link }) => [() => link.change({ isStalled: true }), () => link.clear()])),
  },
} as const satisfies Readonly<Record<string, Kind>>

export type KindName = keyof typeof table

export const kinds: Readonly<Record<KindName, Kind>> = table

const isKindName = (name: string): name is KindName => Object.hasOwn(table, name)

export const kindNames: ReadonlyArray<KindName> = Object.keys(table).filter(isKindName)
