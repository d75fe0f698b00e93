/** The port on one server and on a cluster, with the clients of both libraries. */

import { storeSuite } from "@tenure/testing/conformance"
import { afterAll, beforeAll, describe } from "vitest"
import { type Opened, clusterLibraries, libraries, names } from "./clients.ts"
import { harnessOn } from "./harness.ts"
import { type RedisCluster, startCluster } from "./redis-cluster.ts"
import { type RedisServer, missing, startRedis, titled } from "./redis-server.ts"

describe.skipIf(missing !== undefined)(titled("on one server"), () => {
  let server: RedisServer
  let opened: Opened
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server?.stop())

  describe.each(names)("through %s", (library) => {
    beforeAll(() => {
      opened = libraries[library](server.port)
    })
    afterAll(() => opened?.close())

    storeSuite(
      "redis",
      harnessOn(
        () => opened.client,
        () => [server.port],
      ),
    )
  })
})

describe.skipIf(missing !== undefined)(titled("on a cluster"), () => {
  let cluster: RedisCluster
  let opened: Opened
  const ports = () => cluster.servers.map(({ port }) => port)
  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => cluster?.stop())

  describe.each(names)("through %s", (library) => {
    beforeAll(async () => {
      opened = await clusterLibraries[library](ports())
    })
    afterAll(() => opened?.close())

    storeSuite("redis", {
      ...harnessOn(() => opened.client, ports),
      // Each server has a clock.
      clockErrorMillis: 1000,
    })
  })
})
