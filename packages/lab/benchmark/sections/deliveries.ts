/** Deliveries from one process to another, over an outbox on PostgreSQL. */

import type { KeyringInput, Tenure } from "@tenure/core"
import { data, fillBacklog } from "../backlog.ts"
import { encrypt, schema, startTenure } from "../database.ts"
import type { Row, Section } from "../measurement.ts"
import type { Arrivals } from "../receiver.ts"
import { type Receiver, pause, startReceiver } from "../receiving.ts"
import { quantile } from "../rounds.ts"
import type { Target } from "../target.ts"

// Each project has one webhook: an event is one delivery.
const projectCount = 20

const projectIds = Array.from({ length: projectCount }, (_, index) => `deliveries-${index}`)

/** From the commit to the arrival, for 99 of 100. */
const soon: Target = { of: "figure", atMost: 30 }

type Publish = () => Promise<unknown>

/** The events that a part has published, and its results. */
interface Part {
  readonly published: number
  readonly rows: ReadonlyArray<Row>
}

/** A steady trickle: how late do notifications arrive? */
const measureLatency = async (
  receiver: Receiver,
  publish: Publish,
  seconds: number,
  { beside = "", target }: { readonly beside?: string; readonly target?: Target },
): Promise<Part> => {
  let published = 0
  const before = (await receiver.report()).distinct
  for (let tick = 0; tick < 50 * seconds; tick++) {
    for (let count = 0; count < 4; count++, published++) void publish()
    await pause(20)
  }
  const { latencies } = await receiver.until(before + published)
  const row = (name: string, share: number): Row => ({
    measured: `delivery at 200 events a second${beside}, ${name}`,
    unit: "ms",
    figure: quantile(latencies, share),
  })
  return { published, rows: [row("p50", 0.5), { ...row("p99", 0.99), ...(target && { target }) }] }
}

/** As many as go, with never more than 4,000 under way. */
const measureSustained = async (
  receiver: Receiver,
  publish: Publish,
  seconds: number,
): Promise<Part> => {
  const before = (await receiver.report()).total
  const begin = performance.now()
  let published = 0
  while (performance.now() - begin < 1000 * seconds) {
    if (published - ((await receiver.report()).total - before) > 4000) await pause(10)
    else {
      await Promise.all(Array.from({ length: 500 }, publish))
      published += 500
    }
  }
  const rate = ((await receiver.report()).total - before) / ((performance.now() - begin) / 1000)
  return { published, rows: [{ measured: "deliveries, sustained", unit: "/s", figure: rate }] }
}

/** Delivers a backlog at full speed. Returns the deliveries a second. */
const measureBacklog = async (
  url: string,
  receiver: Receiver,
  published: number,
  backlog: number,
  encryption?: KeyringInput,
): Promise<number> => {
  await fillBacklog({ url, schema }, projectIds, backlog)
  const begin = performance.now()
  const tenure = await startTenure(url, schema, encryption)
  const { distinct } = await receiver.until(published + backlog)
  const rate = (distinct - published) / ((performance.now() - begin) / 1000)
  await tenure.close()
  return rate
}

/** What must not be, after this many publications. */
const faultsOf = (
  { distinct, total, unverified }: Arrivals,
  published: number,
): ReadonlyArray<Row> => {
  const none = { of: "figure", atMost: 0, always: true } as const
  const row = (measured: string, figure: number): Row => ({
    measured,
    unit: "",
    figure,
    target: none,
  })
  return [
    row("deliveries lost", published - distinct),
    row("deliveries twice", total - distinct),
    row("deliveries not verified", unverified),
  ]
}

/** The same trickle, beside projects whose webhooks have backlogs and all hang. */
const measureBesideHanging = async (
  tenure: Tenure,
  receiver: Receiver,
  publish: Publish,
  { projects, seconds, webhooks }: Record<"projects" | "webhooks" | "seconds", number>,
): Promise<ReadonlyArray<Row>> => {
  for (let index = 0; index < projects; index++) {
    const projectId = `hanging-${index}`
    await tenure.memberships.createProject(projectId)
    for (let count = 0; count < webhooks; count++) {
      await tenure.webhooks.create({ projectId, url: receiver.hangingUrl })
    }
    for (let count = 0; count < 10; count++) {
      await tenure.events.publish({ projectId, type: "benchmark", data: data() })
    }
  }
  const beside = ` beside ${projects} × ${webhooks} webhooks that hang`
  const { rows } = await measureLatency(receiver, publish, seconds, { beside })
  return rows
}

/** How fast and how late notifications arrive, and that none is lost. */
export const deliveries: Section = {
  name: "deliveries",
  measure: async ({ database, pick, seconds }) => {
    const { url } = await database()
    const receiver = await startReceiver()
    const tenure = await startTenure(url)
    await receiver.register(tenure, projectIds)
    let index = 0
    const publishing = (by: Tenure) => () =>
      by.events.publish({
        projectId: projectIds[index++ % projectCount] ?? "",
        type: "benchmark",
        data: data(),
      })
    const publish = publishing(tenure)
    const span = pick(7.5 * seconds, 1)
    const trickle = await measureLatency(receiver, publish, span, { target: soon })
    const flood = await measureSustained(receiver, publish, span)
    const published = trickle.published + flood.published
    await receiver.until(published)
    await tenure.close()
    const backlog = pick(25_000 * seconds, 500)
    const plain = await measureBacklog(url, receiver, published, backlog)
    const encryption = { current: "k1", keys: { k1: crypto.getRandomValues(new Uint8Array(32)) } }
    await encrypt(url, encryption)
    const sealed = await measureBacklog(url, receiver, published + backlog, backlog, encryption)
    const faults = faultsOf(await receiver.report(), published + 2 * backlog)
    const hanging = { projects: pick(26, 2), webhooks: pick(50, 2), seconds: 2 * span }
    const late = await startTenure(url, schema, encryption)
    const fair = await measureBesideHanging(late, receiver, publishing(late), hanging)
    await late.close()
    // The other sections have no key.
    await encrypt(url, { keys: encryption.keys })
    receiver.stop()
    const rates: ReadonlyArray<Row> = [
      { measured: "deliveries of a backlog", unit: "/s", figure: plain },
      { measured: "the same, secrets encrypted", unit: "/s", figure: sealed },
    ]
    return { rows: [...trickle.rows, ...flood.rows, ...rates, ...faults, ...fair] }
  },
}
