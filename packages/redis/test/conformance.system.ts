/** The port on a cluster, and on one server with ten times as many inputs per property as in the quick suite. */

import { storeSuite } from "@tenure/testing/conformance"
import { afterAll, beforeAll, describe } from "vitest"
import { type Opened, clusterLibraries, names } from "./clients.ts"
import { certifyServer, harnessOn } from "./harness.ts"
import { type RedisCluster, missing, startCluster, titled } from "./redis-server.ts"

certifyServer(50)

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
      ...harnessOn(() => opened.client, ports, 50),
      // Each server has a clock.
      clockErrorMillis: 1000,
    })
  })
})
