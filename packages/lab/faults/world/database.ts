/** A run's database. */

import { appendFile, readFile, readdir } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import type { PostgresServer } from "@tenure/testing/postgres-server"
import pg from "pg"
import type { Random } from "../random.ts"

/** The harness's own session, past all links. */
export interface Session {
  readonly query: <Row extends pg.QueryResultRow>(
    text: string,
    params?: ReadonlyArray<unknown>,
  ) => Promise<ReadonlyArray<Row>>
  readonly close: () => Promise<void>
}

export const connectTo = async (
  connectionString: string,
  connectionTimeoutMillis = 0,
): Promise<Session> => {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis })
  // The connection may break while nobody asks anything.
  client.on("error", () => {})
  await client.connect()
  return {
    query: async <Row extends pg.QueryResultRow>(
      text: string,
      params: ReadonlyArray<unknown> = [],
    ) => (await client.query<Row>(text, [...params])).rows,
    close: () => client.end().catch(() => {}),
  }
}

const isGone = (id: number): boolean => {
  try {
    process.kill(id, 0)
    return false
  } catch {
    return true
  }
}

/** Sends a signal to a process, unless it has ended. */
export const signal = (id: number, name: NodeJS.Signals): void => {
  if (!isGone(id)) process.kill(id, name)
}

/** The server's first process. */
export const leader = async ({ dataDirectory }: PostgresServer): Promise<number> =>
  Number.parseInt(await readFile(join(dataDirectory, "postmaster.pid"), "utf8"), 10)

/** The fields in `/proc/PID/stat` after the program's name; none if the process has ended. */
export const statOf = async (id: number): Promise<ReadonlyArray<string>> => {
  const text = await readFile(`/proc/${id}/stat`, "utf8").catch(() => "")
  // The name, in parentheses, may contain anything.
  return text === "" ? [] : text.slice(text.lastIndexOf(")") + 2).split(" ")
}

export const childrenOf = async (id: number): Promise<ReadonlyArray<number>> => {
  const ids = (await readdir("/proc")).map(Number).filter(Number.isInteger)
  const stats = await Promise.all(ids.map(statOf))
  return ids.filter((_, index) => Number(stats[index]?.[1]) === id)
}

/** Opens sessions until no more are allowed. Returns what closes them. */
const takeAll = async (open: () => Promise<Session>): Promise<() => Promise<void>> => {
  const sessions: Array<Session> = []
  const take = () => open().catch(() => undefined)
  for (let one = await take(); one !== undefined; one = await take()) sessions.push(one)
  return async () => {
    await Promise.all(sessions.map((session) => session.close()))
  }
}

// Longer than others take to commit, and less than what makes a statement overdue.
const longestStopMillis = 300

/** Stops sessions within statements, each for a moment. Returns what ends this. */
const stopping = (session: Session, user: string, choose: Random): (() => Promise<void>) => {
  const ending = new AbortController()
  const stopped = new Map<number, Promise<void>>()

  const stop = async (id: number): Promise<void> => {
    signal(id, "SIGSTOP")
    await sleep(choose.between(10, longestStopMillis))
    signal(id, "SIGCONT")
    stopped.delete(id)
  }

  const stopSome = async (): Promise<void> => {
    const running = await session.query<{ readonly pid: number }>(
      `SELECT pid FROM pg_stat_activity
       WHERE usename = $1 AND state = 'active' AND backend_xmin IS NOT NULL AND wait_event IS NULL`,
      [user],
    )
    for (const { pid } of running) {
      if (!stopped.has(pid) && choose.chance(0.3)) stopped.set(pid, stop(pid))
    }
  }

  const run = async (): Promise<void> => {
    while (!ending.signal.aborted) {
      await stopSome()
      await sleep(1)
    }
  }

  // The database may go away.
  const running = run().catch(() => {})
  return async () => {
    ending.abort()
    await running
    await Promise.all(stopped.values())
    await session.close()
  }
}

/** The setting that says how far the database's clock is off. */
const shift = "clock.shift"

/** Settings for a server whose clock can be set off. */
export const settings = { [shift]: "0" }

const clocks = [
  ["now", "STABLE"],
  ["transaction_timestamp", "STABLE"],
  ["statement_timestamp", "STABLE"],
  ["clock_timestamp", "VOLATILE"],
] as const

/** Statements that have an account call other functions than PostgreSQL's for the time. */
const shiftingClock = (user: string): ReadonlyArray<string> => [
  "CREATE SCHEMA clock",
  `GRANT USAGE ON SCHEMA clock TO ${user}`,
  ...clocks.map(
    ([name, volatility]) => `
      CREATE FUNCTION clock.${name}() RETURNS timestamptz LANGUAGE sql ${volatility}
      RETURN pg_catalog.${name}() + pg_catalog.current_setting('${shift}')::pg_catalog.interval`,
  ),
  `ALTER ROLE ${user} SET search_path = clock, pg_catalog, public`,
]

/** The role and the password with which processes connect. */
export interface Account {
  readonly user: string
  readonly password: string
}

/** Makes an empty database on a server, which belongs to an account, and which faults can kill, stop and restart. */
export const makeDatabase = async (
  server: PostgresServer,
  name: string,
  { password, user }: Account,
) => {
  const urlThrough = (port: number) => `postgres://${user}:${password}@127.0.0.1:${port}/${name}`
  const withAdmin = async (statements: ReadonlyArray<string>) => {
    const session = await connectTo(server.url)
    for (const statement of statements) await session.query(statement)
    await session.close()
  }
  await withAdmin([
    `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`,
    `DROP ROLE IF EXISTS ${user}`,
    `CREATE ROLE ${user} LOGIN PASSWORD '${password}'`,
    `CREATE DATABASE ${name} OWNER ${user}`,
  ])
  const own = new URL(server.url)
  own.pathname = `/${name}`
  const admin = await connectTo(own.href)
  for (const statement of shiftingClock(user)) await admin.query(statement)
  await admin.close()
  return {
    port: Number(own.port),
    /** The URL that processes use through a link. */
    urlThrough,
    connect: () => connectTo(own.href),
    /** Crashes the server, as if its processes alone lost power. */
    crash: async (): Promise<void> => {
      const id = await leader(server)
      signal(id, "SIGQUIT")
      while (!isGone(id)) await sleep(20)
    },
    halt: server.halt,
    resume: server.resume,
    /** Stops all its processes until `proceed`. */
    standStill: async (): Promise<void> => {
      const id = await leader(server)
      // The first process goes first, so that it starts no further ones.
      signal(id, "SIGSTOP")
      for (const child of await childrenOf(id)) signal(child, "SIGSTOP")
    },
    proceed: async (): Promise<void> => {
      const id = await leader(server)
      for (const child of await childrenOf(id)) signal(child, "SIGCONT")
      signal(id, "SIGCONT")
    },
    stopStatements: async (choose: Random) => stopping(await connectTo(own.href), user, choose),
    /** Sets the clock that the account's statements see off, by milliseconds. */
    shiftClock: async (millis: number): Promise<void> => {
      // The last line with a name counts. A server that is down reads it when it starts.
      const line = `${shift} = '${millis} milliseconds'\n`
      await appendFile(join(server.dataDirectory, "postgresql.conf"), line)
      const id = await leader(server).catch(() => undefined)
      if (id !== undefined) signal(id, "SIGHUP")
    },
    /** Kills the process behind one of the account's sessions. */
    killSession: async (): Promise<void> => {
      const session = await connectTo(own.href)
      const [victim] = await session.query<{ readonly pid: number }>(
        "SELECT pid FROM pg_stat_activity WHERE usename = $1 ORDER BY backend_start LIMIT 1",
        [user],
      )
      if (victim !== undefined) signal(victim.pid, "SIGKILL")
      await session.close()
    },
    endSessions: () =>
      withAdmin([
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${user}'`,
      ]),
    /** Takes all connections that the account may have. Returns what gives them back. */
    crowd: () => takeAll(() => connectTo(urlThrough(Number(own.port)))),
    drop: () => withAdmin([`DROP DATABASE ${name} WITH (FORCE)`, `DROP ROLE ${user}`]),
  }
}

export type Database = Awaited<ReturnType<typeof makeDatabase>>
