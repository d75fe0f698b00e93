/** Listeners over HTTP: how fast events reach them, and what memory they take. */

import { type Database, clients, startTenure } from "../database.ts"
import type { Arrived, Awaiting, Opened, Opening } from "../listeners.ts"
import type { Row, Settings } from "../measurement.ts"
import { start } from "../processes.ts"
import { type Transport, followed, perProject, requests } from "../servers/followed.ts"

const schema = "benchmark_listeners"

const pause = (millis: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, millis)
  })

/** Publishes events, each in the next one of some projects. */
type Publish = (events: number) => Promise<unknown>

/** A server and its listeners, each in a process of its own. */
interface Stage {
  /** Waits until listeners have got so many events together. */
  readonly arrive: (events: number) => Promise<Arrived>
  /** The bytes of the server's process. */
  readonly memory: () => Promise<number>
  readonly send: Publish
}

/** A server of the folder `servers` and how it is started. */
interface Program {
  readonly name: string
  readonly args: ReadonlyArray<string>
}

const profile =
  "Of 307 MB that the bundled server with stores in memory took for 10,000 streams, 53 are the files of Node, 34 the young generation of V8, 115 the rest of the heap, and 105 are outside of the heap, of which `node:http` alone takes 104. Here, the server runs from its sources, which takes 45 MB more. [The feed](../../../docs/internals/feed.md#what-it-costs) has the same of WebSockets."

// As the bundled server is started.
const flags = ["--max-semi-space-size=16"]

const projectsFor = (slots: number): number => Math.ceil(slots / perProject)

/** Lends a server without listeners, then with all of them, to functions that measure. */
const onStage = async <A>(
  { args, name }: Program,
  slots: number,
  measure: (stage: Stage, bytesAlone: number) => Promise<A>,
  transport: Transport = "SSE",
): Promise<A> => {
  const server = await start<number>(`./servers/${name}.ts`, { args, flags })
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
    return await measure(
      {
        memory,
        arrive: (events) => listeners.ask({ _tag: "Await", events } satisfies Awaiting),
        send: (events) => server.ask({ events }),
      },
      bytesAlone,
    )
  } finally {
    listeners.stop()
    server.stop()
  }
}

/** What is measured beside Tenure. */
interface Peer {
  readonly name: string
  readonly program: Program
}

const senders: ReadonlyArray<Peer> = [
  { name: "node:http, which keeps no events", program: { name: "bare-events", args: [] } },
  { name: "better-sse, which keeps no events", program: { name: "better-sse", args: [] } },
]

/** What has idle listeners, by transport. */
const idlers: Readonly<Record<Transport, ReadonlyArray<Peer>>> = {
  SSE: [
    { name: "node:http alone", program: { name: "bare-events", args: [] } },
    { name: "better-sse", program: { name: "better-sse", args: [] } },
  ],
  WebSocket: [{ name: "ws alone", program: { name: "bare-web-sockets", args: [] } }],
}

/** Publishes in this process, with many calls in flight. */
const publishing = async (
  { url }: Database,
  projects: number,
): Promise<{ readonly publish: Publish; readonly close: () => Promise<void> }> => {
  const tenure = await startTenure(url, schema)
  const ids = followed(projects).map(({ projectId }) => projectId)
  let next = 0
  const publishOne = () =>
    tenure.events.publish({
      projectId: ids[next++ % ids.length] ?? "",
      type: "payment.completed",
      data: { amount: 5 },
    })
  return {
    close: tenure.close,
    publish: (events) => {
      let left = events
      const work = async () => {
        while (left-- > 0) await publishOne()
      }
      return Promise.all(Array.from({ length: Math.min(events, clients) }, work))
    },
  }
}

/** How many events a second reach all listeners of their project. */
const rateOf = async (
  { arrive, send }: Stage,
  publish: Publish | undefined,
  events: number,
  listeners: number,
): Promise<number> => {
  const begin = performance.now()
  const arriving = arrive(events * listeners)
  await (publish ?? send)(events)
  await arriving
  return (1000 * events) / (performance.now() - begin)
}

const toEach = (listeners: number): string =>
  listeners > perProject
    ? `events over HTTP, each to the ${perProject} listeners of its project, ${listeners.toLocaleString("en")} in all`
    : `events over HTTP to each of ${listeners} who follow a project`

/** Measures listeners of Tenure, and beside them those of servers that do less. */
export const listenerRows = async (
  database: Database,
  { pick }: Settings,
): Promise<ReadonlyArray<Row>> => {
  const tenure = (listeners: number): Program => ({
    name: "listened",
    args: [database.url, schema, String(projectsFor(listeners))],
  })

  const rates = async (listeners: number, events: number): Promise<ReadonlyArray<Row>> => {
    const ofEach = Math.min(listeners, perProject)
    const figure = await onStage(tenure(listeners), listeners, async (stage) => {
      const { close, publish } = await publishing(database, projectsFor(listeners))
      const found = await rateOf(stage, publish, events, ofEach)
      await close()
      return found
    })
    const rows: Array<Row> = []
    for (const { name, program } of senders) {
      const rate = await onStage(program, ofEach, (stage) =>
        rateOf(stage, undefined, events, ofEach),
      )
      const measured = toEach(listeners)
      rows.push({ measured, unit: "/s", figure, yardstick: { name, figure: rate } })
    }
    return rows
  }

  /** Publishes 200 events a second. */
  const late = (events: number): Promise<Row> =>
    onStage(tenure(perProject), perProject, async ({ arrive }) => {
      const { close, publish } = await publishing(database, 1)
      const arriving = arrive(events * perProject)
      const begin = performance.now()
      for (let sent = 0; sent < events; sent++) {
        const due = begin + 5 * sent - performance.now()
        if (due > 0) await pause(due)
        await publish(1)
      }
      const { late: figure } = await arriving
      await close()
      return {
        measured: "an event over HTTP to 100 who follow, at 200 a second, 99th percentile",
        unit: "ms",
        figure,
        target: { of: "figure", atMost: 20 },
      }
    })

  /** Measures the memory of a server with idle listeners, and what each of them takes. */
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
    const { bytes, each } = await idleBytes(tenure(listeners), listeners, transport)
    const rows: Array<Row> = []
    for (const { name, program } of idlers[transport]) {
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

  await database.sql(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
  const rows = [
    ...(await rates(1, pick(20_000, 50))),
    ...(await rates(100, pick(5000, 50))),
    ...(await rates(1000, pick(2000, 50))),
    await late(pick(2000, 20)),
    ...(await idle(pick(10_000, 100), "SSE")),
    ...(await idle(pick(10_000, 100), "WebSocket")),
  ]
  await database.sql(`DROP SCHEMA ${schema} CASCADE`)
  return rows
}
