/** What becomes of limits in a cluster when processes and servers end at the wrong moment. */

import { spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { assert } from "@effect/vitest"
import { ApiKeyId, type LimitedClient } from "@tenure/core/store"
import { chunksOf } from "effect/Array"
import fc from "fast-check"
import { afterAll, beforeAll, describe, it } from "vitest"
import { slotOf } from "../src/guard.ts"
import { type Opened, clusterLibraries, names } from "./clients.ts"
import { admitted, exhaust, storeOn } from "./harness.ts"
import { type RedisCluster, missing, startCluster, tell, titled, until } from "./redis-server.ts"

/** An id whose bucket is on the server with a given third. */
const idOn = (third: 0 | 1 | 2, bucketOf: (id: string) => string): string => {
  const ids = Array.from({ length: 1000 }, (_, index) => String(index))
  return ids.find((id) => Math.floor((3 * slotOf(bucketOf(id))) / 16_384) === third) ?? ""
}

/** A client whose key is on the first server, and whose address is on the second. */
const client = {
  keyId: ApiKeyId(idOn(0, (id) => `tenure:key:${id}`)),
  address: idOn(1, (id) => `tenure:address:${id}`),
}

const portsOf = ({ servers }: RedisCluster): ReadonlyArray<number> =>
  servers.map(({ port }) => port)

describe.skipIf(missing !== undefined)(titled("a cluster"), () => {
  let cluster: RedisCluster
  let opened: Opened
  beforeAll(async () => {
    cluster = await startCluster()
    opened = await clusterLibraries.ioredis(portsOf(cluster))
  })
  afterAll(async () => {
    opened?.close()
    await cluster?.stop()
  })

  it("has keys in the slots that its servers say", async () => {
    const [server] = cluster.servers
    const texts = fc.string({ unit: fc.constantFrom("{", "}", "a", "é", ":"), minLength: 1 })
    for (const text of fc.sample(texts, 50)) {
      assert.strictEqual(slotOf(text), await tell(server, "CLUSTER", "KEYSLOT", text))
    }
  })

  it("admits to several processes what a bucket holds, and no more", async () => {
    const other = await clusterLibraries.redis(portsOf(cluster))
    const stores = [storeOn(opened), storeOn(other)]
    // Each address has many keys, and each key many addresses.
    const clients = Array.from({ length: 400 }, (_, index) => ({
      keyId: ApiKeyId(`key ${index % 20}`),
      address: `address ${index % 3}`,
    }))
    // Not all at once: a take that is not answered in time on a busy machine may have taken a token.
    const takeAll = async () => {
      const taken: Array<Awaited<ReturnType<(typeof stores)[number]["take"]>>> = []
      for (const some of chunksOf(clients, 100))
        taken.push(...(await Promise.all(stores.flatMap(({ take }) => some.map(take)))))
      return taken
    }
    const taken = [...(await takeAll()), ...(await takeAll())]
    assert.strictEqual(admitted(taken), 300)
    await Promise.all(stores.map(({ close }) => close()))
    other.close()
  })

  it("has lost one token of a key when a process is killed before it asks for the address", async () => {
    const [ofKey, ofAddress] = cluster.servers
    await tell(ofAddress, "CLIENT", "PAUSE", 60_000, "WRITE")
    const program = fileURLToPath(new URL("programs/take.ts", import.meta.url))
    const args = [String(ofKey.port), client.keyId, client.address]
    const child = spawn(process.execPath, ["-C", "@tenure/source", program, ...args])
    await until(ofKey, ["EXISTS", `tenure:key:${client.keyId}`], /1/)
    child.kill("SIGKILL")
    await once(child, "exit")
    await tell(ofAddress, "CLIENT", "UNPAUSE")
    const store = storeOn(opened)
    assert.strictEqual(admitted(await store.takeMany(200, client)), 99)
    const strangers = await store.takeMany(10, { ...client, keyId: undefined })
    assert.strictEqual(admitted(strangers), 1)
    await store.close()
  })
})

describe.skipIf(missing !== undefined)(titled("a server of a cluster"), () => {
  let cluster: RedisCluster
  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => cluster?.stop())

  it("fails, others go on, and a replica takes over, in the middle of a load", async () => {
    const [, ofAddress] = cluster.servers
    const replica = await cluster.addReplica(ofAddress)
    const elsewhere = {
      keyId: ApiKeyId(idOn(2, (id) => `tenure:key:${id}`)),
      address: idOn(0, (id) => `tenure:address:${id}`),
    }
    const clients = await Promise.all(
      names.map((library) => clusterLibraries[library](portsOf(cluster))),
    )
    const stores = clients.map(storeOn)
    const takeMany = async (count: number, of: LimitedClient) =>
      (await Promise.all(stores.map((store) => store.takeMany(count, of)))).flat()

    let total = admitted(await takeMany(30, client))
    assert.strictEqual(total, 60)
    // The replica has all that.
    await tell(ofAddress, "WAIT", 1, 0)

    const underWay = takeMany(10, client)
    await ofAddress.stop()
    total += admitted(await underWay)
    assert.strictEqual(admitted(await takeMany(25, elsewhere)), 50)

    await tell(replica, "CLUSTER", "FAILOVER", "TAKEOVER")
    total += await exhaust(() => takeMany(3, client))
    // Of those under way, the replica may not have some, or their answers may have been lost.
    assert.isAtLeast(total, 80)
    assert.isAtMost(total, 120)
    await Promise.all(stores.map(({ close }) => close()))
    for (const { close } of clients) close()
  })
})
