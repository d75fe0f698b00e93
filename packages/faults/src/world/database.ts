/** The database of a run, which faults can kill, stop and restart. */

import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import type { PostgresServer } from "@tenure/testing/PostgresServer"
import pg from "pg"

/** A session of the harness's own, past all links. */
export interface Session {
  readonly query: <Row extends pg.QueryResultRow>(
    text: string,
    params?: ReadonlyArray<unknown>,
  ) => Promise<ReadonlyArray<Row>>
  readonly close: () => Promise<void>
}

/** The database of a run. */
export interface Database {
  readonly port: number
  /** The URL that processes use through a link. */
  readonly urlThrough: (port: number) => string
  readonly connect: () => Promise<Session>
  /** Crashes the server, as a loss of power to its processes alone does. */
  readonly crash: () => Promise<void>
  readonly halt: () => Promise<void>
  readonly resume: () => Promise<void>
  /** Stops all its processes until `proceed`. */
  readonly standStill: () => Promise<void>
  readonly proceed: () => Promise<void>
  /** Kills the process of one of the sessions of the account. */
  readonly killSession: () => Promise<void>
  /** Ends all sessions of the account. */
  readonly endSessions: () => Promise<void>
  /** Takes all connections that the account may have. Returns what gives them back. */
  readonly crowd: () => Promise<() => Promise<void>>
  readonly drop: () => Promise<void>
}

const connectTo = async (url: string): Promise<Session> => {
  const client = new pg.Client({ connectionString: url })
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

const signal = (id: number, name: NodeJS.Signals): void => {
  if (!isGone(id)) process.kill(id, name)
}

/** The first process of the server. */
const leader = async ({ dataDirectory }: PostgresServer): Promise<number> =>
  Number.parseInt(await readFile(join(dataDirectory, "postmaster.pid"), "utf8"), 10)

/** The id of the parent of a process; 0 if it has ended. */
const parentOf = async (id: number): Promise<number> => {
  const text = await readFile(`/proc/${id}/stat`, "utf8").catch(() => "")
  // The name of the program, in parentheses, may contain anything.
  return Number(text.slice(text.lastIndexOf(")") + 2).split(" ")[1] ?? 0)
}

const childrenOf = async (id: number): Promise<ReadonlyArray<number>> => {
  const ids = (await readdir("/proc")).map(Number).filter(Number.isInteger)
  const parents = await Promise.all(ids.map(parentOf))
  return ids.filter((_, index) => parents[index] === id)
}

const waitUntilGone = async (id: number): Promise<void> => {
  while (!isGone(id)) await sleep(20)
}

/** Opens sessions until no more are allowed. Returns what closes them. */
const takeAll = async (open: () => Promise<Session>): Promise<() => Promise<void>> => {
  const sessions: Array<Session> = []
  const take = async (): Promise<void> => {
    const session = await open().catch(() => undefined)
    if (session === undefined) return
    sessions.push(session)
    return take()
  }
  await take()
  return async () => {
    await Promise.all(sessions.map((session) => session.close()))
  }
}

/** The role and the password with which processes connect. */
export interface Account {
  readonly user: string
  readonly password: string
}

/** Makes an empty database on a server, which belongs to an account. */
export const makeDatabase = async (
  server: PostgresServer,
  name: string,
  { password, user }: Account,
): Promise<Database> => {
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
  return {
    port: Number(own.port),
    urlThrough,
    connect: () => connectTo(own.href),
    crash: async () => {
      const id = await leader(server)
      signal(id, "SIGQUIT")
      await waitUntilGone(id)
    },
    halt: server.halt,
    resume: server.resume,
    standStill: async () => {
      const id = await leader(server)
      // The first process goes first, so that it starts no further ones.
      signal(id, "SIGSTOP")
      for (const child of await childrenOf(id)) signal(child, "SIGSTOP")
    },
    proceed: async () => {
      const id = await leader(server)
      for (const child of await childrenOf(id)) signal(child, "SIGCONT")
      signal(id, "SIGCONT")
    },
    killSession: async () => {
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
    crowd: () => takeAll(() => connectTo(urlThrough(Number(own.port)))),
    drop: () => withAdmin([`DROP DATABASE ${name} WITH (FORCE)`, `DROP ROLE ${user}`]),
  }
}
