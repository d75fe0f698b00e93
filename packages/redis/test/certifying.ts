/** Certifies the port on one server, with the clients of both libraries. */

import { storeSuite } from "@tenure/testing/conformance"
import { afterAll, beforeAll, describe } from "vitest"
import { type Opened, libraries, names } from "./clients.ts"
import { harnessOn } from "./harness.ts"
import { type RedisServer, missing, startRedis, titled } from "./redis-server.ts"

/**
 * Declares the tests.
 *
 * @param runs - the number of inputs per property
 */
export const certifyServer = (runs: number): void => {
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
          runs,
        ),
      )
    })
  })
}
