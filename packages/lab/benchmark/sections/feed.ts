/** The feed: what it costs an extension, and how fast events reach those who follow. */

import type { Tenure } from "@tenure/core"
import { type Database, clients, fill, startTenure } from "../database.ts"
import { type Row, type Section, type Settings, ratioRows, rowsOf } from "../measurement.ts"
import { type Contestant, brief, compare, inPairs, loops, quantile, sample } from "../rounds.ts"
import { listenerRows } from "./listeners.ts"

const withFeed = "benchmark_feed"
const withoutFeed = "benchmark_no_feed"

const endDate = "2099-01-01T00:00:00.000Z"

const extending = (name: string, tenure: Tenure, members: number): Contestant => ({
  name,
  run: (seconds) =>
    loops(clients, seconds, () =>
      tenure.memberships.extend({
        projectId: "p1",
        userId: String(1 + Math.floor(Math.random() * members)),
        endDate,
      }),
    ),
})

/** Publishes an event. Its time is that of the call. */
const publish = ({ events }: Tenure) =>
  events.publish({ projectId: "p1", type: "payment.completed", data: { amount: 5 } })

// So many begin to follow at a time: each of them reads what is stored, and waits for that no longer than
// the store allows.
const atATime = 50

/** Those who follow a project. They are in another Tenure, which hears of no event by itself. */
const followers = async (publisher: Tenure, tenure: Tenure, count: number) => {
  const projectId = "p1"
  const { cursor: after } = await tenure.events.read({ projectId })
  // Every one of them has it when it has begun.
  await publish(publisher)
  const ending = new AbortController()
  let received = 0
  const delays: Array<number> = []
  const follow = async (hasBegun: () => void) => {
    for await (const { at } of tenure.events.stream({ projectId, after, signal: ending.signal })) {
      hasBegun()
      received++
      delays.push(Date.now() - at)
    }
  }
  const all: Array<Promise<void>> = []
  const begin = () =>
    new Promise<void>((resolve, reject) => {
      const following = follow(resolve)
      following.catch(reject)
      all.push(following)
    })
  for (let begun = 0; begun < count; begun += atATime) {
    await Promise.all(Array.from({ length: Math.min(atATime, count - begun) }, begin))
  }
  received = 0
  delays.length = 0
  return {
    delays,
    received: () => received,
    end: async () => {
      ending.abort()
      await Promise.all(all)
    },
  }
}

type Followers = Awaited<ReturnType<typeof followers>>

const pause = (millis: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, millis)
  })

/** Waits until every follower has had an event. */
const until = async ({ received }: Followers, count: number): Promise<void> => {
  while (received() < count) await pause(1)
}

/** Events a second that reach every one of some followers. */
const fanOut = async (
  publisher: Tenure,
  reader: Tenure,
  count: number,
  { pick }: Settings,
): Promise<Row> => {
  const events = pick(count === 1000 ? 5000 : 20_000, 50)
  const all = await followers(publisher, reader, count)
  const { rate } = await sample(async () => {
    const queue = Array.from({ length: events }, (_, index) => index)
    const work = async () => {
      while (queue.pop() !== undefined) await publish(publisher)
    }
    await Promise.all(Array.from({ length: clients }, work))
    await until(all, events * count)
    return events
  })
  await all.end()
  return {
    measured: `events to each of ${count.toLocaleString("en")} who follow a project`,
    unit: "/s",
    figure: rate,
  }
}

/** How long events take to arrive, at 200 a second. */
const arrival = async (publisher: Tenure, reader: Tenure, { pick }: Settings): Promise<Row> => {
  const events = pick(2000, 20)
  const count = 100
  const all = await followers(publisher, reader, count)
  const start = performance.now()
  for (let sent = 0; sent < events; sent++) {
    const due = start + 5 * sent - performance.now()
    if (due > 0) await pause(due)
    await publish(publisher)
  }
  await until(all, events * count)
  await all.end()
  return {
    measured: "an event to 100 who follow, at 200 a second, 99th percentile",
    unit: "ms",
    figure: quantile(all.delays, 0.99),
    target: { of: "figure", atMost: 20 },
  }
}

const afterPosition = `
  SELECT xid::text, id, type, at, body FROM ${withFeed}.events
  WHERE project_number = (SELECT number FROM ${withFeed}.projects WHERE id = 'p1')
    AND (epoch, xid, id) > (1, '9000000000000000000'::xid8, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
  ORDER BY epoch, xid, id LIMIT 100`

// It misses events of transactions that commit late.
const byPosition = "after the last position, by hand"

const polling = (name: string, poll: () => Promise<unknown>): Contestant => ({
  name,
  run: (seconds) => loops(1, seconds, poll),
})

/** What a poll costs that finds nothing new. */
const idlePoll = async (
  reader: Tenure,
  { sql }: Database,
  settings: Settings,
): Promise<ReadonlyArray<Row>> => {
  const { cursor } = await reader.events.read({ projectId: "p1" })
  const scores = await compare(
    {
      tenure: polling("Tenure", () => reader.events.read({ projectId: "p1", after: cursor })),
      peers: [polling(byPosition, () => sql(afterPosition))],
    },
    brief(settings),
  )
  return rowsOf("a poll that finds nothing new", "time", scores)
}

/** The feed. */
export const feed: Section = {
  name: "feed",
  measure: async (settings) => {
    const database = await settings.database()
    const members = settings.pick(100_000, 1000)
    const tenures: Array<Tenure> = []
    for (const schema of [withFeed, withoutFeed]) {
      await database.sql(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
      const tenure = await startTenure(database.url, schema)
      await fill(database, tenure, "p1", members, schema)
      tenures.push(tenure)
    }
    const [one, other] = tenures
    if (one === undefined || other === undefined) throw new Error("there is no Tenure")
    await database.sql(`DROP INDEX ${withoutFeed}.events_feed`)
    await database.sql(
      `ALTER TABLE ${withoutFeed}.events DROP COLUMN xid CASCADE, DROP COLUMN epoch`,
    )
    const share = await inPairs(
      extending("Tenure", one, members),
      extending("without the feed's column and index", other, members),
      { rounds: settings.pick(100, 2), seconds: settings.pick(0.2, 0.05) },
    )
    await other.close()
    const reader = await startTenure(database.url, withFeed)
    const measured = "rate of extensions, of that of extensions without the feed's column and index"
    const rows = [
      ...ratioRows(measured, share, { of: "figure", atLeast: 0.97 }),
      ...(await idlePoll(reader, database, settings)),
    ]
    for (const count of [1, 100, 1000]) rows.push(await fanOut(one, reader, count, settings))
    rows.push(await arrival(one, reader, settings))
    rows.push(...(await listenerRows(database, settings)))
    await reader.close()
    await one.close()
    for (const schema of [withFeed, withoutFeed]) {
      await database.sql(`DROP SCHEMA ${schema} CASCADE`)
    }
    return { rows }
  },
}
