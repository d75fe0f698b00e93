/** Two servers with cells, and work on these while they are moved. */

import { setTimeout as sleep } from "node:timers/promises"
import { type Tenure, createTenure } from "@tenure/core"
import { cellNumber } from "@tenure/core/internal"
import { ProjectId } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import type { QueryResultRow } from "pg"
import { afterEach, beforeAll } from "vitest"
import { postgres } from "../src/index.ts"
import { runListCells, runMoveCell } from "../src/ops/cells.ts"
import { silent } from "../src/ops/move-cell.ts"
import { runListSchemas, runMakeCells } from "../src/ops/upkeep.ts"
import { recordingTransport } from "./harness.ts"
import { ownServer, queryAt } from "./servers.ts"

/** The servers' names. The first has the even cells at first, the second the odd ones. */
export const names = ["first", "second"] as const

export const run = <A, E>(effect: Effect.Effect<A, E>) => Effect.runPromise(effect)

/** Starts two servers with four cells for a test file. */
export const twoServers = () => {
  const settings = {
    wal_level: "logical",
    fsync: "off",
    max_sync_workers_per_subscription: "4",
    max_logical_replication_workers: "8",
  }
  const servers = [ownServer(settings), ownServer(settings)]
  let tenures: ReadonlyArray<Tenure> = []

  const urlOf = (index: number, role: "tenure" | "owner" | "app"): string => {
    const url = new URL(servers[index]?.().url ?? "")
    url.username = role
    return url.href
  }

  /** Both servers, as the role sees them that owns the tables. */
  const options = () =>
    names.map((name, index) => ({
      name,
      url: urlOf(index, "owner"),
      listenUrl: undefined,
      replicationUrl: undefined,
    }))

  /** Runs statements as superuser. */
  const sqlOn = <Row extends QueryResultRow>(index: number, ...statements: ReadonlyArray<string>) =>
    queryAt<Row>(urlOf(index, "tenure"), ...statements)

  const open = async (transport = recordingTransport().transport): Promise<Tenure> => {
    const tenure = await createTenure({
      stores: postgres({
        servers: names.map((name, index) => ({ name, url: urlOf(index, "app") })),
        migrate: false,
        maxConnections: 4,
      }),
      transport,
      logger: { info: () => {}, warn: () => {}, error: () => {} },
    })
    tenures = [...tenures, tenure]
    return tenure
  }

  beforeAll(async () => {
    // Rights as docs/internals/scaling.md has them, without a superuser.
    for (const index of names.keys())
      await sqlOn(
        index,
        "CREATE ROLE owner LOGIN REPLICATION PASSWORD 'tenure'",
        "CREATE ROLE app LOGIN PASSWORD 'tenure'",
        "GRANT CREATE ON DATABASE postgres TO owner",
        "GRANT pg_create_subscription TO owner",
      )
    await run(runMakeCells(options(), undefined, 4))
    const schemas = await run(runListSchemas(options(), undefined))
    for (const { name, url } of schemas)
      await sqlOn(
        url === urlOf(0, "owner") ? 0 : 1,
        `GRANT USAGE ON SCHEMA ${name} TO app`,
        `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${name} TO app`,
        `GRANT USAGE ON ALL SEQUENCES IN SCHEMA ${name} TO app`,
        `REVOKE UPDATE, DELETE ON ${name}.audit FROM app`,
      )
  })
  afterEach(async () => {
    await Promise.all(tenures.map((tenure) => tenure.close()))
    tenures = []
  })

  /** Returns a project in a cell. */
  const projectIn = (number: number): string => {
    for (let n = 1; ; n++) if (cellNumber(ProjectId(`p${n}`), 4) === number) return `p${n}`
  }

  const move = (number: number, to: string) =>
    run(runMoveCell(options(), undefined, number, to, silent))

  const places = async () => {
    const cells = await run(runListCells(options(), undefined))
    return cells.map(({ moved_from, moving_to, server }) => ({ server, moving_to, moved_from }))
  }

  /** Everything at both ends that is only there during moves. */
  const leftovers = async () => {
    const all = `
      SELECT slot_name::text AS name FROM pg_replication_slots
      UNION ALL SELECT subname::text FROM pg_subscription
      UNION ALL SELECT pubname::text FROM pg_publication
      UNION ALL SELECT nspname::text FROM pg_namespace WHERE nspname LIKE '%_moved'
      UNION ALL SELECT tgname::text FROM pg_trigger WHERE tgname = 'closed'`
    const found = await Promise.all(
      [0, 1].map((index) => sqlOn<{ readonly name: string }>(index, all)),
    )
    return found.flat().map(({ name }) => name)
  }

  return { leftovers, move, open, options, places, projectIn, sqlOn, urlOf }
}

const day = 86_400_000

// Between two changes, so that moves are what the test takes its time for.
const pauseMillis = 10

export const memberCount = 20

/** Extends half a project's memberships, one after another, until it is stopped. Returns what was acknowledged. */
export const startLoad = (tenure: Tenure, projectId: string, half: 0 | 1) => {
  const acknowledged = new Map<string, number>()
  const ended = new AbortController()
  let changes = 0
  const working = (async () => {
    while (!ended.signal.aborted) {
      const userId = String((2 * changes++ + half) % memberCount)
      const endDate = Date.UTC(2099, 0, 1) + changes * day
      await tenure.memberships.extend({ projectId, userId, endDate })
      acknowledged.set(userId, endDate)
      await sleep(pauseMillis)
    }
  })()
  return async () => {
    ended.abort()
    await working
    return { acknowledged, changes }
  }
}

export const fill = async (tenure: Tenure, projectId: string) => {
  await tenure.memberships.createProject(projectId)
  const endDate = "2098-01-01T00:00:00.000Z"
  for (let n = 0; n < memberCount; n++)
    await tenure.memberships.grant({ projectId, userId: String(n), endDate })
}

/** Follows the feed from its beginning. */
export const follow = (tenure: Tenure, projectId: string) => {
  const seen: Array<string> = []
  const ended = new AbortController()
  const stream = tenure.events.stream({ projectId, after: "start", signal: ended.signal })
  const following = (async () => {
    for await (const { id } of stream) seen.push(id)
  })()
  return {
    seen,
    stop: async () => {
      ended.abort()
      await following.catch(() => {})
    },
  }
}

export const idsOf = (sent: ReturnType<typeof recordingTransport>["sent"]) =>
  new Set(sent.map(({ headers }) => new Headers(headers).get("webhook-id")))
