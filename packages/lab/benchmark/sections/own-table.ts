/** Extensions over HTTP, on PostgreSQL: Tenure beside a team's own tables with a webhook job. */

import { createOwnTables, openOwnTables } from "../alternatives/own-table.ts"
import { type Database, clients, meterDatabase, startTenure } from "../database.ts"
import { type Section, type Target, rowsOf } from "../measurement.ts"
import {
  type Child,
  type ServerProcess,
  generate,
  startGenerator,
  startServer,
} from "../processes.ts"
import { type Receiver, newSecret, startReceiver } from "../receiving.ts"
import { type Contestant, type Field, compare } from "../rounds.ts"
import { projectId, requests, tokensOf } from "../servers/workload.ts"

export const ownTableRows = {
  answered: "extension over HTTP, on PostgreSQL, beside own tables",
  delivered: "extension over HTTP, on PostgreSQL, until its notification has arrived",
} as const

const schemas = { tenure: "benchmark_beside", own: "benchmark_own" } as const

/** The alternative. */
const ownTables = "Fastify + pg, own tables"

const notSlower: Readonly<Record<string, Target>> = { [ownTables]: { of: "ratio", atLeast: 1 } }

/** Registers a webhook in both. */
const addWebhooks = async (url: string, receiver: Receiver): Promise<void> => {
  const tenure = await startTenure(url, schemas.tenure)
  await receiver.add("tenure", async (hook) => {
    const { secret } = await tenure.webhooks.create({ projectId, url: hook })
    return secret
  })
  await tenure.close()
  const { addWebhook, pool } = openOwnTables(url, schemas.own)
  await receiver.add("own", async (hook) => {
    const secret = newSecret()
    await addWebhook(projectId, hook, secret)
    return secret
  })
  await pool.end()
}

/** What a contestant needs. */
interface Parts {
  readonly database: Database
  readonly generator: Child
  readonly receiver: Receiver
}

/** Extends over HTTP. Counts the processor time in the server and in PostgreSQL. */
const extending = (
  name: string,
  server: ServerProcess,
  { database, generator, receiver }: Parts,
  load: ReadonlyArray<string>,
): ((isDelivered: boolean) => Contestant) => {
  return (isDelivered) => ({
    name,
    run: async (seconds) => {
      const inDatabase = await meterDatabase(database.sql)
      const before = await server.cpu()
      const { distinct } = await receiver.report()
      const begin = Date.now()
      const task = { port: server.port, connections: clients, seconds, requests: load }
      const { responses } = await generate(generator, task, name)
      const arrived = isDelivered ? await receiver.arrived(distinct + responses) : undefined
      const end = arrived?.lastAt ?? Date.now()
      const cpu = (await server.cpu()) - before + (await inDatabase())
      return { rate: (1000 * responses) / (end - begin), cpu: cpu / responses }
    },
  })
}

export const ownTable: Section = {
  name: "own-table",
  measure: async (settings) => {
    const keys = settings.pick(2000, 100)
    const database = await settings.database()
    const { sql, url } = database
    const drop = () => sql(`DROP SCHEMA IF EXISTS ${schemas.tenure}, ${schemas.own} CASCADE`)
    await drop()
    await createOwnTables(url, schemas.own)
    const receiver = await startReceiver()
    const generator = await startGenerator()
    const servers = {
      tenure: await startServer("tenure", "postgres", url, schemas.tenure, String(keys)),
      own: await startServer("fastify", url, schemas.own, String(keys)),
    }
    const load = requests(tokensOf(keys))
    const parts = { database, generator, receiver }
    const tenure = extending("Tenure", servers.tenure, parts, load)
    const own = extending(ownTables, servers.own, parts, load)
    const fieldOf = (isDelivered: boolean): Field<Contestant> => ({
      tenure: tenure(isDelivered),
      peers: [own(isDelivered)],
    })
    const alone = await compare(fieldOf(false), settings)
    await addWebhooks(url, receiver)
    const together = await compare(fieldOf(true), settings)
    const { total, distinct, unverified } = await receiver.report()
    for (const { stop } of [generator, receiver, servers.tenure, servers.own]) stop()
    await drop()
    if (total > distinct || unverified > 0) throw new Error("a notification came twice or unsigned")
    return {
      rows: [
        ...rowsOf(ownTableRows.answered, "rate", alone, notSlower),
        ...rowsOf(ownTableRows.answered, "cpu", alone),
        ...rowsOf(ownTableRows.delivered, "rate", together, notSlower),
        ...rowsOf(ownTableRows.delivered, "cpu", together),
      ],
    }
  },
}
