/** How each kind of fault is caused and ended. */

import type { Exit } from "./history.ts"
import type { KindName } from "./kinds.ts"
import { random } from "./random.ts"
import type { Planned } from "./schedule.ts"
import type { Database } from "./world/database.ts"
import type { Link } from "./world/proxy.ts"
import type { Server } from "./world/server.ts"
import type { World } from "./world/world.ts"

/** Begins a fault. Returns what ends it. */
type Cause = (world: World, planned: Planned, onExit: (exit: Exit) => void) => Promise<End>

type End = () => Promise<void>

const serverOf = ({ servers }: World, { target }: Planned): Server => {
  const server = servers.get(target ?? "")
  if (server === undefined) throw new Error(`there is no server ${target}`)
  return server
}

const linksOf = ({ links }: World, { target }: Planned): ReadonlyArray<Link> =>
  [...links].filter(([name]) => target === undefined || name === target).map(([, link]) => link)

const nothing: End = async () => {}

/** Does something with every link that the fault hits. */
const onLinks =
  (
    begin: (link: Link, planned: Planned) => Promise<void> | void,
    end?: (link: Link) => Promise<void> | void,
  ): Cause =>
  async (world, planned) => {
    const links = linksOf(world, planned)
    await Promise.all(links.map((link) => begin(link, planned)))
    return async () => {
      if (end !== undefined) await Promise.all(links.map(end))
    }
  }

/** Runs a locking statement in a transaction that stays open. */
const locking =
  (statement: string): Cause =>
  async ({ database }, { target }) => {
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
  }

/** Does something with the database at once, unless it is down. */
const onDatabase =
  (act: (database: Database) => Promise<End>): Cause =>
  ({ database }) =>
    act(database).catch(() => nothing)

const halting: Cause = async ({ database }) => {
  await database.halt()
  return database.resume
}

const hourMillis = 3_600_000

/** How far a clock jumps, which is the same in every run of the seed: ahead, or back. */
const jumpOf = ({ at, kind, millis }: Planned): number => {
  const choose = random(at, kind, millis)
  const most = choose.chance(0.5) ? hourMillis : -hourMillis
  return kind === "databaseClockJumped" ? most : Math.round(most * choose.next())
}

/** The delay of a fault is one of its own, the same in every run of the seed. */
const delayOf = ({ at, kind, millis }: Planned): number => random(at, kind, millis).between(20, 100)

/** The causes of all kinds. */
export const causes: Readonly<Record<KindName, Cause>> = {
  serverKilled: async (world, planned) => {
    const server = serverOf(world, planned)
    await server.kill()
    return server.start
  },
  serverStopped: async (world, planned) => {
    const server = serverOf(world, planned)
    server.standStill()
    return async () => server.proceed()
  },
  serverTerminated: async (world, planned, onExit) => {
    const server = serverOf(world, planned)
    onExit(await server.terminate())
    return server.start
  },
  databaseKilled: async ({ database }) => {
    await database.crash()
    return database.resume
  },
  databaseRestarted: halting,
  databaseAway: halting,
  databaseStopped: async ({ database }) => {
    await database.standStill()
    return database.proceed
  },
  sessionKilled: onDatabase(async ({ killSession }) => {
    await killSession()
    return nothing
  }),
  sessionsEnded: onDatabase(async ({ endSessions }) => {
    await endSessions()
    return nothing
  }),
  databaseCrowded: onDatabase(({ crowd }) => crowd()),
  connectionsReset: onLinks((link) => link.reset()),
  connectionsSilent: onLinks((link) => link.silence()),
  linkRefused: onLinks(
    (link) => link.refuse(),
    (link) => link.accept(),
  ),
  linkStalled: onLinks(
    (link) => link.change({ isStalled: true }),
    (link) => link.change({ isStalled: false }),
  ),
  // Each direction takes half of the time.
  linkDelayed: onLinks(
    (link, planned) => link.change({ delayMillis: delayOf(planned) }),
    (link) => link.change({ delayMillis: 0 }),
  ),
  linkThrottled: onLinks(
    (link) => link.change({ bytesPerSecond: 2 ** 16 }),
    (link) => link.change({ bytesPerSecond: Infinity }),
  ),
  projectLocked: locking("SELECT 1 FROM tenure.projects WHERE id = $1 FOR UPDATE"),
  membersLocked: locking(
    `SELECT 1 FROM tenure.memberships m JOIN tenure.projects p ON p.number = m.project_number
     WHERE p.id = $1 FOR UPDATE OF m`,
  ),
  tableLocked: locking("LOCK TABLE tenure.memberships IN ACCESS EXCLUSIVE MODE"),
  statementsStopped: ({ database }, { at, kind, millis }) =>
    database.stopStatements(random(at, kind, millis)).catch(() => nothing),
  databaseClockJumped: async ({ database }, planned) => {
    await database.shiftClock(jumpOf(planned))
    return () => database.shiftClock(0)
  },
  limiterKilled: async ({ limiter }) => {
    await limiter?.kill()
    return async () => limiter?.start()
  },
  limiterSilent: async ({ limiter }) => {
    limiter?.link.change({ isStalled: true })
    return async () => limiter?.link.change({ isStalled: false })
  },
  serverClockJumped: async (world, planned) => {
    const server = serverOf(world, planned)
    await server.shiftClock(jumpOf(planned))
    return () => server.shiftClock(0)
  },
}
