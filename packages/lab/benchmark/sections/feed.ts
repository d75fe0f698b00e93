/** The feed: what it costs an extension, how fast events reach listeners over HTTP, and what memory these take. */

import { setTimeout as pause } from "node:timers/promises"
import type { Tenure } from "@tenure/core"
import { type Database, clients, extending, fill, startTenure } from "../database.ts"
import type { Arrived, Awaiting, Opened, Opening } from "../listeners.ts"
import { type Row, type Section, type Settings, ratioRows, rowsOf } from "../measurement.ts"
import { start } from "../processes.ts"
import { type Contestant, brief, compare, inPairs, loops } from "../rounds.ts"
import { type Transport, followed, perProject, requests } from "../servers/followed.ts"

const withFeed = "benchmark_feed"
const withoutFeed = "benchmark_no_feed"
const forListeners = "benchmark_listeners"

const afterPosition = `
  SELECT xid::text, id, type, at, body FROM ${withFeed}.events
  WHERE project_number = (SELECT number FROM ${withFeed}.projects WHERE id = 'p1')
    AND (epoch, xid, id) > (1, '9000000000000000000'::xid8, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
  ORDER BY epoch, xid, id LIMIT 100`

// It misses transactions that commit late.
const byPosition = "after the last position, by hand"

const polling = (name: string, poll: () => Promise<unknown>): Contestant => ({
  name,
  run: (seconds) => loops(1, seconds, poll),
})

/** What a poll costs that finds nothing new. */
const idlePoll = async (
  { events }: Tenure,
  { sql }: Database,
  settings: Settings,
): Promise<ReadonlyArray<Row>> => {
  const { cursor } = await events.read({ projectId: "p1" })
  const field = {
    tenure: polling("Tenure", () => events.read({ projectId: "p1", after: cursor })),
    peers: [polling(byPosition, () => sql(afterPosition))],
  }
  return rowsOf("a poll that finds nothing new", "time", await compare(field, brief(settings)))
}

/** Compares extensions with and without the feed's column and index. */
const extensions = async (database: Database, settings: Settings): Promise<ReadonlyArray<Row>> => {
  const members = settings.pick(100_000, 1000)
  const { sql, url } = database
  const open = async (schema: string): Promise<Tenure> => {
    await sql(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
    const tenure = await startTenure(url, schema)
    await fill(database, tenure, "p1", members, schema)
    return tenure
  }
  const [one, other] = [await open(withFeed), await open(withoutFeed)]
  await sql(`DROP INDEX ${withoutFeed}.events_feed`)
  await sql(`ALTER TABLE ${withoutFeed}.events DROP COLUMN xid CASCADE, DROP COLUMN epoch`)
  const share = await inPairs(
    extending("Tenure", one, "p1", members),
    extending("without the feed's column and index", other, "p1", members),
    { rounds: settings.pick(100, 2), seconds: settings.pick(0.2, 0.05) },
  )
  const measured = "rate of extensions, of that of extensions without the feed's column and index"
  const rows = [
    ...ratioRows(measured, share, { of: "figure", atLeast: 0.97 }),
    ...(await idlePoll(one, database, settings)),
  ]
  for (const tenure of [one, other]) await tenure.close()
  for (const schema of [withFeed, withoutFeed]) await sql(`DROP SCHEMA ${schema} CASCADE`)
  return rows
}

/** A server and its listeners, in two processes. */
interface Stage {
  /** Waits until listeners have got so many events together. */
  readonly arrive: (events: number) => Promise<Arrived>
  /** The server's resident bytes. */
  readonly memory: () => Promise<number>
  /** Has the server send events, if it is not Tenure's. */
  readonly send: (events: number) => Promise<unknown>
}

/** A server's name, its module from the folder `servers`, and the arguments. */
type Program = readonly [name: string, module: string, ...args: ReadonlyArray<string>]

const projectsFor = (slots: number): number => Math.ceil(slots / perProject)

/** Lends a server without listeners, then with all, to a function that measures. */
const onStage = async <A>(
  [, module, ...args]: Program,
  slots: number,
  measure: (stage: Stage, bytesAlone: number) => Promise<A>,
  transport: Transport = "SSE",
): Promise<A> => {
  // As the bundled server is started.
  const flags = ["--max-semi-space-size=16"]
  const server = await start<number>(`./servers/${module}.ts`, { args, flags })
  const listeners = await start("./listeners.ts")
  const memory = async () => (await server.ask<NodeJS.MemoryUsage>({})).rss
  try {
    const bytesAlone = await memory()
    const opening: Opening = {
      _tag: "Open",
      port: server.greeting,
      requests: requests(transport, projectsFor(slots), slots),
    }
    const { firstFailure, open } = await listeners.ask<Opened>(opening)
    if (open !== slots) throw new Error(`${open} of ${slots} could listen: ${firstFailure}`)
    const arrive = (events: number) =>
      listeners.ask<Arrived>({ _tag: "Await", events } satisfies Awaiting)
    const send = (events: number) => server.ask({ events })
    return await measure({ memory, arrive, send }, bytesAlone)
  } finally {
    listeners.stop()
    server.stop()
  }
}

const senders: ReadonlyArray<Program> = [
  ["node:http, which keeps no events", "streams", "sse"],
  ["better-sse, which keeps no events", "streams", "better-sse"],
]

/** What Tenure's idle listeners are compared with, by transport. */
const idlers: Readonly<Record<Transport, ReadonlyArray<Program>>> = {
  SSE: [
    ["node:http alone", "streams", "sse"],
    ["better-sse", "streams", "better-sse"],
  ],
  WebSocket: [["ws alone", "streams", "ws"]],
}

/** Lends a function that publishes from this process, with many calls in flight, each in the next project. */
const publishing = async <A>(
  { url }: Database,
  projects: number,
  use: (publish: (events: number) => Promise<unknown>) => Promise<A>,
): Promise<A> => {
  const { close, events } = await startTenure(url, forListeners)
  const ids = followed(projects).map(({ projectId }) => projectId)
  let next = 0
  const found = await use((count) => {
    let left = count
    const work = async () => {
      while (left-- > 0) {
        const projectId = ids[next++ % ids.length] ?? ""
        await events.publish({ projectId, type: "payment.completed", data: { amount: 5 } })
      }
    }
    return Promise.all(Array.from({ length: Math.min(count, clients) }, work))
  })
  await close()
  return found
}

/** How many events a second reach all their listeners. */
const rateOf = async (
  { arrive }: Stage,
  publish: (events: number) => Promise<unknown>,
  events: number,
  listeners: number,
): Promise<number> => {
  const begin = performance.now()
  const arriving = arrive(events * listeners)
  await publish(events)
  await arriving
  return (1000 * events) / (performance.now() - begin)
}

const profile =
  "Of 307 MB that the bundled server with stores in memory took for 10,000 streams, 53 are the files of Node, 34 the young generation of V8, 115 the rest of the heap, and 105 are outside of the heap, of which `node:http` alone takes 104. Here, the server runs from its sources, which takes 45 MB more. [The feed](../../../docs/internals/feed.md#what-it-costs) has the same of WebSockets."

/** Measures Tenure's listeners beside servers that do less. */
const listenerRows = async (
  database: Database,
  { pick }: Settings,
): Promise<ReadonlyArray<Row>> => {
  const tenureFor = (listeners: number): Program => [
    "Tenure",
    "listened",
    database.url,
    forListeners,
    String(projectsFor(listeners)),
  ]

  const rates = async (listeners: number, events: number): Promise<ReadonlyArray<Row>> => {
    const each = Math.min(listeners, perProject)
    const measured =
      listeners > perProject
        ? `events over HTTP, each to the ${perProject} listeners of its project, ${listeners.toLocaleString("en")} in all`
        : `events over HTTP to each of ${listeners} who follow a project`
    const figure = await onStage(tenureFor(listeners), listeners, (stage) =>
      publishing(database, projectsFor(listeners), (publish) =>
        rateOf(stage, publish, events, each),
      ),
    )
    const rows: Array<Row> = []
    for (const program of senders) {
      const rate = await onStage(program, each, (stage) => rateOf(stage, stage.send, events, each))
      rows.push({ measured, unit: "/s", figure, yardstick: { name: program[0], figure: rate } })
    }
    return rows
  }

  /** Publishes 200 events a second. */
  const late = (events: number): Promise<Row> =>
    onStage(tenureFor(perProject), perProject, ({ arrive }) =>
      publishing(database, 1, async (publish) => {
        const arriving = arrive(events * perProject)
        const begin = performance.now()
        for (let sent = 0; sent < events; sent++) {
          await pause(Math.max(0, begin + 5 * sent - performance.now()))
          await publish(1)
        }
        return {
          measured: "an event over HTTP to 100 who follow, at 200 a second, 99th percentile",
          unit: "ms",
          figure: (await arriving).late,
          target: { of: "figure", atMost: 20 },
        }
      }),
    )

  /** Measures a server's memory with idle listeners, and what each takes. */
  const idleBytes = (program: Program, listeners: number, transport: Transport) =>
    onStage(
      program,
      listeners,
      async ({ memory }, alone) => {
        // Garbage is collected in the meantime.
        await pause(pick(12_000, 10))
        const bytes = await memory()
        return { bytes, each: (bytes - alone) / listeners }
      },
      transport,
    )

  const idle = async (listeners: number, transport: Transport): Promise<ReadonlyArray<Row>> => {
    const { bytes, each } = await idleBytes(tenureFor(listeners), listeners, transport)
    const rows: Array<Row> = []
    for (const program of idlers[transport]) {
      const [name] = program
      const beside = await idleBytes(program, listeners, transport)
      rows.push(
        {
          measured: `memory of a server with ${listeners.toLocaleString("en")} idle listeners, ${transport}`,
          unit: "MB",
          figure: bytes / 1_000_000,
          yardstick: { name, figure: beside.bytes / 1_000_000 },
          target: { of: "figure", atMost: 300, profile },
        },
        {
          measured: `memory for a listener, ${transport}`,
          unit: "kB",
          figure: each / 1000,
          yardstick: { name, figure: beside.each / 1000 },
        },
      )
    }
    return rows
  }

  await database.sql(`DROP SCHEMA IF EXISTS ${forListeners} CASCADE`)
  const rows = [
    ...(await rates(1, pick(20_000, 50))),
    ...(await rates(100, pick(5000, 50))),
    ...(await rates(1000, pick(2000, 50))),
    await late(pick(2000, 20)),
    ...(await idle(pick(10_000, 100), "SSE")),
    ...(await idle(pick(10_000, 100), "WebSocket")),
  ]
  await database.sql(`DROP SCHEMA ${forListeners} CASCADE`)
  return rows
}

/** The feed. */
export const feed: Section = {
  name: "feed",
  measure: async (settings) => {
    const database = await settings.database()
    const rows = await extensions(database, settings)
    return { rows: [...rows, ...(await listenerRows(database, settings))] }
  },
}
