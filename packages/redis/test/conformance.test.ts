/** The port on one server, with the clients of both libraries. */

import { storeSuite } from "@tenure/testing"
import { afterAll, beforeAll, describe } from "vitest"
import { libraries, names, type Opened } from "./clients.ts"
import { harnessOn } from "./harness.ts"
import { missing, type RedisServer, startRedis, titled } from "./redisServer.ts"

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
