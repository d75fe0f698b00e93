/** Sentinel puts a replica in its server's place, in the middle of a load. */

import { assert } from "@effect/vitest"
import * as Exit from "effect/Exit"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { names, sentinelLibraries } from "./clients.ts"
import { admitted, exhaust, storeOn } from "./harness.ts"
import {
  type RedisServer,
  missing,
  startRedis,
  startSentinel,
  tell,
  titled,
  until,
} from "./redis-server.ts"

const client = { address: "192.0.2.1", keyId: undefined }
const other = { address: "192.0.2.2", keyId: undefined }

describe.skipIf(missing !== undefined)(titled("Sentinel"), () => {
  let server: RedisServer
  let replica: RedisServer
  let sentinel: RedisServer
  beforeAll(async () => {
    server = await startRedis(["--repl-diskless-sync-delay", "0"])
    replica = await startRedis(["--replicaof", `127.0.0.1 ${server.port}`])
    await until(replica, ["INFO", "replication"], /master_link_status:up/)
    sentinel = await startSentinel(server)
    await until(sentinel, ["SENTINEL", "REPLICAS", "limits"], new RegExp(String(replica.port)))
  })
  afterAll(() => Promise.all([server, replica, sentinel].map((one) => one?.stop())))

  it("replaces a server that is gone, and the limits hold", async () => {
    const clients = await Promise.all(
      names.map((library) => sentinelLibraries[library](sentinel.port)),
    )
    const stores = clients.map(storeOn)
    const takeMany = async (count: number) =>
      (await Promise.all(stores.map((store) => store.takeMany(count, client)))).flat()

    let total = admitted(await takeMany(30))
    assert.strictEqual(total, 60)
    // The replica has all that.
    await tell(server, "WAIT", 1, 0)
    const underWay = takeMany(10)
    await server.stop()
    total += admitted(await underWay)
    await tell(sentinel, "SENTINEL", "FAILOVER", "limits")
    // What is sent before a store has found the replica may wait, and count when nobody expects the answer.
    for (const { take } of stores)
      await expect.poll(async () => Exit.isSuccess(await take(other))).toBe(true)
    total += await exhaust(() => takeMany(3))
    // Of those under way, the replica may not have some, or their answers may have been lost.
    assert.isAtLeast(total, 80)
    assert.isAtMost(total, 120)
    await Promise.all(stores.map(({ close }) => close()))
    for (const { close } of clients) close()
  })
})
