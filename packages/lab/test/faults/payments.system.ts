/** A host that is killed in a transaction with `tenure.within` leaves all of it or nothing. */

import { type PostgresServer, startPostgres } from "@tenure/testing/postgres-server"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { start } from "../../faults/payments/pay.ts"

let server: PostgresServer
let payments: Awaited<ReturnType<typeof start>>

beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off" } })
  payments = await start(server.url)
})
afterAll(async () => {
  await payments.stop()
  await server.stop()
})

describe("a host that is killed between its own insert and the commit", () => {
  it.each([1, 2, 3])("leaves both or neither (seed %i)", async (seed) => {
    expect(["all", "nothing"]).toContain(await payments.pay(seed))
  })
})
