/** Signed notifications: Tenure beside queues on PostgreSQL whose jobs send them. */

import { createOwnTables, openOwnTables } from "../alternatives/own-table.ts"
import type { DelivererName, DelivererSetup, QueueWebhook } from "../alternatives/queues.ts"
import { type Delivered, deliverBacklog } from "../backlog.ts"
import { startTenure } from "../database.ts"
import type { Row, Section, Target } from "../measurement.ts"
import { type Child, start } from "../processes.ts"
import { type Received, type Receiver, newSecret, startReceiver } from "../receiving.ts"
import { median, quantile } from "../rounds.ts"
import type { DelivererReport, DelivererTask } from "../servers/deliverer.ts"

export const queueRows = {
  rate: "notifications of a backlog, 20 webhooks",
  p99: "notification at 200 events a second, 20 webhooks, p99",
  sending: "notification of a backlog, 20 webhooks, processor time of the sender",
  database: "notification of a backlog, 20 webhooks, processor time of PostgreSQL",
} as const

/** The programs, and about as many deliveries as they make in a second. */
const rates = {
  Tenure: 5000,
  "pg-boss": 4000,
  "graphile-worker": 4000,
  "own tables": 4000,
} as const satisfies Record<DelivererName, number>

const isName = (name: string): name is DelivererName => name in rates
const names = Object.keys(rates).filter(isName)

// They are longer than in other sections.
const maxRounds = 3

const schemaOf = (name: DelivererName): string => `benchmark_queue_${name.replaceAll(/\W/g, "_")}`

const idsOf = (name: DelivererName): ReadonlyArray<string> =>
  Array.from({ length: 20 }, (_, index) => `${name.replaceAll(" ", "-")}-${index}`)

/** Registers a program's webhooks, in its tables if it has some for them. */
const addWebhooks = async (
  url: string,
  name: DelivererName,
  receiver: Receiver,
): Promise<ReadonlyArray<QueueWebhook>> => {
  const [schema, projectIds] = [schemaOf(name), idsOf(name)]
  if (name === "Tenure") {
    const tenure = await startTenure(url, schema)
    await receiver.register(tenure, projectIds)
    await tenure.close()
    return projectIds.map((projectId) => ({ projectId, url: "", secret: "" }))
  }
  const webhooks: Array<QueueWebhook> = []
  for (const projectId of projectIds) {
    const secret = newSecret()
    await receiver.add(projectId, async (hook) => {
      webhooks.push({ projectId, url: hook, secret })
      return secret
    })
  }
  if (name === "own tables") {
    await createOwnTables(url, schema)
    const { addWebhook, pool } = openOwnTables(url, schema)
    for (const { projectId, secret, url: hook } of webhooks) {
      await addWebhook(projectId, hook, secret)
    }
    await pool.end()
  }
  return webhooks
}

/** What is measured: costs, and the 99th percentile of the milliseconds until arrival. */
type Figures = Delivered & { readonly p99: number }

const views = {
  rate: { unit: "/s", target: { of: "ratio", atLeast: 1 } },
  p99: { unit: "ms", target: { of: "ratio", atMost: 1 } },
  sending: { unit: "µs CPU", target: undefined },
  database: { unit: "µs CPU", target: undefined },
} as const satisfies Partial<
  Record<keyof Figures, { readonly unit: string; readonly target: Target | undefined }>
>

const isView = (view: string): view is keyof typeof views => view in views

/** A row for each program beside Tenure. */
const rowsOf = (
  view: keyof typeof views,
  samples: ReadonlyMap<DelivererName, ReadonlyArray<Figures>>,
): ReadonlyArray<Row> => {
  const { target, unit } = views[view]
  const figureOf = (name: DelivererName) =>
    median((samples.get(name) ?? []).map((figures) => figures[view]))
  return names
    .filter((name) => name !== "Tenure")
    .map((name) => ({
      measured: queueRows[view],
      unit,
      figure: figureOf("Tenure"),
      yardstick: { name, figure: figureOf(name) },
      ...(target && { target }),
    }))
}

/** How fast and how late notifications arrive. */
export const queues: Section = {
  name: "queues",
  measure: async ({ database: open, rounds, seconds }) => {
    const database = await open()
    const { sql, url } = database
    const drop = async () => {
      for (const name of names) await sql(`DROP SCHEMA IF EXISTS ${schemaOf(name)} CASCADE`)
    }
    await drop()
    const receiver = await startReceiver()
    const children = new Map<DelivererName, Child>()
    for (const name of names) {
      const webhooks = await addWebhooks(url, name, receiver)
      const setup: DelivererSetup = { url, schema: schemaOf(name), webhooks }
      const args = [name, JSON.stringify(setup)]
      children.set(name, await start("./servers/deliverer.ts", { args }))
    }

    /** Delivers a backlog for about this many seconds. */
    const backlog = async (name: DelivererName, child: Child, span: number): Promise<Delivered> => {
      const count = Math.ceil(rates[name] * span)
      await child.ask({ do: "fill", count } satisfies DelivererTask)
      return deliverBacklog(database, receiver, [child], count)
    }
    /** Delivers events while they are published. Returns the 99th percentile of the milliseconds. */
    const trickle = async ({ ask }: Child, span: number): Promise<number> => {
      const tell = (task: DelivererTask) => ask<DelivererReport>(task)
      const publish = async (time: number): Promise<Received> => {
        const { distinct } = await receiver.report()
        const { published } = await tell({ do: "publish", seconds: time })
        return receiver.arrived(distinct + published)
      }
      await tell({ do: "start" })
      await publish(span / 4)
      const { latencies } = await publish(span)
      await tell({ do: "stop" })
      return quantile(latencies, 0.99)
    }

    // Compilation is not measured.
    for (const [name, child] of children) await backlog(name, child, seconds / 2)
    const samples = new Map<DelivererName, Array<Figures>>(names.map((name) => [name, []]))
    for (let round = 0; round < Math.min(rounds, maxRounds); round++) {
      for (const [name, child] of children) {
        const delivered = await backlog(name, child, 2 * seconds)
        samples.get(name)?.push({ ...delivered, p99: await trickle(child, 3 * seconds) })
      }
    }
    const { distinct, total, unverified } = await receiver.report()
    for (const { stop } of [receiver, ...children.values()]) stop()
    await drop()
    if (total > distinct || unverified > 0) throw new Error("a notification came twice or unsigned")
    return {
      rows: Object.keys(views)
        .filter(isView)
        .flatMap((view) => rowsOf(view, samples)),
    }
  },
}
