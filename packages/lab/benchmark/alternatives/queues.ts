/**
 * Programs that deliver notifications from PostgreSQL: Tenure, and queues whose jobs send one each.
 *
 * The jobs of pg-boss and graphile-worker do less than Tenure: the webhook is in the payload, so its table
 * is not read, and a webhook that was deleted meanwhile still gets its notifications; an event has one
 * webhook; there is no history of attempts and no fairness between webhooks. Both queues listen for new
 * jobs, claim many at a time, and settle them together.
 */

import { randomUUID } from "node:crypto"
import type { Tenure } from "@tenure/core"
import { type Runner, makeWorkerUtils, run } from "graphile-worker"
import { PgBoss } from "pg-boss"
import { data, fillBacklog } from "../backlog.ts"
import { startTenure } from "../database.ts"
import { type OwnEvent, openOwnTables } from "./own-table.ts"
import { type Notification, send } from "./send.ts"

/** A webhook, the only one in its project. */
export interface QueueWebhook {
  readonly projectId: string
  readonly url: string
  readonly secret: string
}

/** A program that delivers. */
export interface Deliverer {
  /** Publishes an event, as soon as possible for those who deliver. */
  readonly publish: (webhook: QueueWebhook) => Promise<unknown>
  /** Publishes many events at once while nobody delivers, for each webhook in turn. */
  readonly fill: (count: number) => Promise<unknown>
  readonly start: () => Promise<unknown>
  readonly stop: () => Promise<unknown>
}

/** Where a program keeps its tables, and the webhooks, which have been registered. */
export interface DelivererSetup {
  readonly url: string
  readonly schema: string
  readonly webhooks: ReadonlyArray<QueueWebhook>
}

const attempts = 10

const bodyOf = (): string =>
  JSON.stringify({ type: "benchmark", timestamp: new Date().toISOString(), data: data() })

const notificationOf = ({ secret, url }: QueueWebhook): Notification => ({
  id: randomUUID(),
  body: bodyOf(),
  url,
  secret,
})

const inTurn = <A, B>(all: ReadonlyArray<A>, count: number, use: (one: A) => B): Array<B> => {
  const repeated = Array.from({ length: Math.ceil(count / all.length) }, () => all.map(use))
  return repeated.flat().slice(0, count)
}

const tenure = async ({ schema, url, webhooks }: DelivererSetup): Promise<Deliverer> => {
  const projectIds = webhooks.map(({ projectId }) => projectId)
  let running: Tenure | undefined
  return {
    publish: async ({ projectId }) =>
      running?.events.publish({ projectId, type: "benchmark", data: data() }),
    fill: (count) => fillBacklog({ url, schema }, projectIds, count),
    start: async () => (running = await startTenure(url, schema)),
    stop: async () => running?.close(),
  }
}

const eventOf = ({ projectId }: QueueWebhook): OwnEvent => ({
  id: randomUUID(),
  projectId,
  body: bodyOf(),
})

const ownTable = async ({ schema, url, webhooks }: DelivererSetup): Promise<Deliverer> => {
  const { publish, startJob } = openOwnTables(url, schema)
  let stop: (() => Promise<void>) | undefined
  return {
    publish: (webhook) => publish([eventOf(webhook)]),
    fill: (count) => publish(inTurn(webhooks, count, eventOf)),
    start: async () => (stop = startJob()),
    stop: async () => stop?.(),
  }
}

const pgBoss = async ({ schema, url, webhooks }: DelivererSetup): Promise<Deliverer> => {
  const queue = "webhooks"
  // As many connections as Tenure opens by default.
  const boss = new PgBoss({ connectionString: url, schema, max: 10, useListenNotify: true })
  boss.on("error", console.error)
  await boss.start()
  const retries = { retryLimit: attempts - 1, retryDelay: 2, retryBackoff: true }
  await boss.createQueue(queue, { ...retries, notify: true })
  const options = {
    batchSize: 100,
    localConcurrency: 2,
    burstWhenBatchFull: true,
    pollingIntervalSeconds: 0.5,
    perJobResults: true,
  } as const
  return {
    publish: (webhook) => boss.send(queue, notificationOf(webhook)),
    fill: (count) =>
      boss.insert(
        queue,
        inTurn(webhooks, count, (webhook) => ({ data: notificationOf(webhook) })),
      ),
    start: () =>
      boss.work<Notification>(queue, options, (jobs) =>
        Promise.all(
          jobs.map(({ id, data: notification }) =>
            send(notification).then(
              () => ({ id, status: "completed" as const }),
              () => ({ id, status: "failed" as const }),
            ),
          ),
        ),
      ),
    stop: () => boss.offWork(queue, { wait: true }),
  }
}

declare global {
  namespace GraphileWorker {
    interface Tasks {
      readonly webhook: Notification
    }
  }
}

const identifier = "webhook"

const graphileWorker = async ({ schema, url, webhooks }: DelivererSetup): Promise<Deliverer> => {
  const connection = { connectionString: url, schema, maxPoolSize: 10 }
  const utils = await makeWorkerUtils(connection)
  await utils.migrate()
  let runner: Runner | undefined
  return {
    publish: (webhook) =>
      utils.addJob(identifier, notificationOf(webhook), { maxAttempts: attempts }),
    fill: (count) =>
      utils.addJobs(
        inTurn(webhooks, count, (webhook) => ({
          identifier,
          payload: notificationOf(webhook),
          maxAttempts: attempts,
        })),
      ),
    start: async () => {
      runner = await run({
        ...connection,
        noHandleSignals: true,
        taskList: { [identifier]: send },
        preset: {
          worker: {
            concurrentJobs: 100,
            localQueue: { size: 200 },
            completeJobBatchDelay: 0,
            failJobBatchDelay: 0,
          },
        },
      })
    },
    stop: async () => runner?.stop(),
  }
}

const makers = {
  Tenure: tenure,
  "pg-boss": pgBoss,
  "graphile-worker": graphileWorker,
  "own tables": ownTable,
}

/** The programs, by name. */
export type DelivererName = keyof typeof makers

const isName = (name: string): name is DelivererName => name in makers

/** Makes the named program ready, without starting it. */
export const makeDeliverer = (name: string, setup: DelivererSetup): Promise<Deliverer> => {
  if (!isName(name)) throw new Error(`there is no program ${name}`)
  return makers[name](setup)
}
