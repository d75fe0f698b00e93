/** The kinds of faults: what each of them hits, how long it lasts, and what it may disturb. */

/**
 * What a fault hits: a server, the link between a server and the database, a project, everything, or the Redis that
 * keeps the rate limits in some runs.
 */
type Target = "server" | "link" | "project" | "database" | "limiter"

/** A kind of fault. */
export interface Kind {
  readonly title: string
  readonly hits: Target
  /** The shortest and the longest time that it lasts, in seconds. */
  readonly seconds: readonly [least: number, most: number]
  /**
   * Whether everything works again soon after the end of the fault, or already soon after its
   * beginning, because what remains of the fault need not disturb anybody.
   */
  readonly healsFrom: "start" | "end"
  /** Whether the process or the database is gone meanwhile, so that no second such fault can hit it. */
  readonly takesDown: boolean
}

const table = {
  serverKilled: {
    title: "a server is killed (`kill -9`) and started again",
    hits: "server",
    seconds: [0.1, 1],
    healsFrom: "end",
    takesDown: true,
  },
  serverStopped: {
    title: "a server stands still (SIGSTOP)",
    hits: "server",
    seconds: [0.3, 3],
    healsFrom: "end",
    takesDown: true,
  },
  serverTerminated: {
    title: "a server is restarted (SIGTERM)",
    hits: "server",
    seconds: [0.1, 1],
    healsFrom: "end",
    takesDown: true,
  },
  databaseKilled: {
    title: "the database crashes and is started again",
    hits: "database",
    seconds: [0.2, 2],
    healsFrom: "end",
    takesDown: true,
  },
  databaseRestarted: {
    title: "the database is restarted",
    hits: "database",
    seconds: [0.2, 2],
    healsFrom: "end",
    takesDown: true,
  },
  databaseStopped: {
    title: "the database stands still (SIGSTOP)",
    hits: "database",
    seconds: [0.3, 3],
    healsFrom: "end",
    takesDown: true,
  },
  databaseAway: {
    title: "the database is away for about ten seconds",
    hits: "database",
    seconds: [10, 10],
    healsFrom: "end",
    takesDown: true,
  },
  sessionKilled: {
    title: "a process of the database is killed (`kill -9`), and all others begin anew",
    hits: "database",
    seconds: [0, 0],
    healsFrom: "start",
    takesDown: false,
  },
  sessionsEnded: {
    title: "an administrator ends all sessions of the database",
    hits: "database",
    seconds: [0, 0],
    healsFrom: "start",
    takesDown: false,
  },
  databaseCrowded: {
    title: "other programs take all connections that the database allows",
    hits: "database",
    seconds: [0.5, 3],
    healsFrom: "end",
    takesDown: false,
  },
  connectionsReset: {
    title: "all connections to the database are reset once",
    hits: "link",
    seconds: [0, 0],
    healsFrom: "start",
    takesDown: false,
  },
  connectionsSilent: {
    title: "connections to the database die in silence, new ones work",
    hits: "link",
    seconds: [0, 0],
    healsFrom: "start",
    takesDown: false,
  },
  linkRefused: {
    title: "the database is cut off, connections are refused",
    hits: "link",
    seconds: [0.2, 3],
    healsFrom: "end",
    takesDown: true,
  },
  linkStalled: {
    title: "the database is cut off in silence",
    hits: "link",
    seconds: [0.2, 3],
    healsFrom: "end",
    takesDown: true,
  },
  linkDelayed: {
    title: "the database is 40 to 200 ms away",
    hits: "link",
    seconds: [2, 6],
    healsFrom: "start",
    takesDown: false,
  },
  linkThrottled: {
    title: "the link to the database carries 64 KiB/s",
    hits: "link",
    seconds: [1, 4],
    healsFrom: "end",
    takesDown: false,
  },
  projectLocked: {
    title: "another program locks a project",
    hits: "project",
    seconds: [0.5, 6],
    healsFrom: "end",
    takesDown: false,
  },
  membersLocked: {
    title: "another program locks the memberships of a project",
    hits: "project",
    seconds: [0.5, 6],
    healsFrom: "end",
    takesDown: false,
  },
  tableLocked: {
    title: "another program locks the table of memberships",
    hits: "database",
    seconds: [0.5, 6],
    healsFrom: "end",
    takesDown: false,
  },
  statementsStopped: {
    title: "sessions of the database stand still within statements, up to 0.3 s each (SIGSTOP)",
    hits: "database",
    seconds: [2, 6],
    healsFrom: "end",
    takesDown: false,
  },
  databaseClockJumped: {
    title: "the clock of the database jumps by an hour, and back",
    hits: "database",
    seconds: [0.5, 6],
    healsFrom: "end",
    takesDown: false,
  },
  serverClockJumped: {
    title: "the clock of a server jumps by up to an hour, and back",
    hits: "server",
    seconds: [0.5, 4],
    healsFrom: "end",
    takesDown: false,
  },
  limiterKilled: {
    title: "the Redis of the rate limits is killed and started again",
    hits: "limiter",
    seconds: [0.2, 5],
    healsFrom: "end",
    takesDown: true,
  },
  limiterSilent: {
    title: "the Redis of the rate limits is cut off in silence",
    hits: "limiter",
    seconds: [0.2, 5],
    healsFrom: "end",
    takesDown: true,
  },
} as const satisfies Readonly<Record<string, Kind>>

/** The name of a kind. */
export type KindName = keyof typeof table

/** All kinds by name. */
export const kinds: Readonly<Record<KindName, Kind>> = table

const isKindName = (name: string): name is KindName => Object.hasOwn(table, name)

/** The names of all kinds. */
export const kindNames: ReadonlyArray<KindName> = Object.keys(table).filter(isKindName)
