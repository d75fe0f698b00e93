/** Prints everything that is measured. */

import { startPostgres } from "@tenure/testing/PostgresServer"
import { connect, schema, startTenure } from "./database.ts"
import { measureDeliveries } from "./deliveries.ts"
import { measureBulk, measureExtensions } from "./extensions.ts"
import { countRoundTrips } from "./roundTrips.ts"

const rounds = Number(process.env["ROUNDS"] ?? 5)
const seconds = Number(process.env["ROUND_SECONDS"] ?? 4)

const given = process.env["DATABASE_URL"]
const server = given === undefined ? await startPostgres() : undefined
const url = given ?? server?.url ?? ""

const database = connect(url)
await database.sql(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
const tenure = await startTenure(url)
await measureExtensions(database, tenure, { rounds, seconds })
await measureBulk(database, tenure)
console.log(`\nRound trips of one extension over HTTP: ${await countRoundTrips(url, schema)}`)
await tenure.close()

await measureDeliveries(url, { seconds: 7.5 * seconds, backlog: 25_000 * seconds })

await database.sql(`DROP SCHEMA ${schema} CASCADE`)
await database.close()
await server?.stop()
