import { createSocket } from "node:dgram"
import { Resolver } from "node:dns"
import { lookup } from "node:dns/promises"
import { once } from "node:events"
import { describe, expect, it } from "vitest"
import type { Resolve } from "../src/dial.ts"
import { makeResolve } from "../src/transport.ts"

/** Runs a test with a name server that receives questions and never answers. */
const withSilentServer = async (
  test: (resolve: Resolve, received: () => Promise<unknown>) => Promise<void>,
): Promise<void> => {
  const server = createSocket("udp4").bind(0, "127.0.0.1")
  await once(server, "listening")
  const resolver = new Resolver({ timeout: 200, tries: 1 })
  resolver.setServers([`127.0.0.1:${server.address().port}`])
  try {
    await test(makeResolve(resolver), () => once(server, "message"))
  } finally {
    resolver.cancel()
    server.close()
  }
}

const outcomeOf = (resolve: Resolve, name: string): Promise<unknown> =>
  new Promise((done) => resolve(name, (error, addresses) => done(error?.code ?? addresses)))

describe("resolving a name", () => {
  it("finds names of the hosts file without asking a name server", () =>
    withSilentServer(async (resolve) => {
      const loopback = { address: "127.0.0.1", family: 4 }
      expect(await outcomeOf(resolve, "LOCALHOST.")).toContainEqual(loopback)
    }))

  it("fails if no name server answers", () =>
    withSilentServer(async (resolve) => {
      expect(await outcomeOf(resolve, "name.example")).toBe("ETIMEOUT")
    }))

  it("does not hold up other look-ups while many are unanswered", () =>
    withSilentServer(async (resolve, received) => {
      const unanswered = Array.from({ length: 64 }, (_, index) =>
        outcomeOf(resolve, `name-${index}.example`),
      )
      await received()
      let isWaiting = true
      const all = Promise.all(unanswered).then(() => (isWaiting = false))
      expect(await outcomeOf(resolve, "localhost")).toContainEqual({
        address: "127.0.0.1",
        family: 4,
      })
      // A look-up that needs a thread of the process gets one.
      await lookup("localhost")
      expect(isWaiting).toBe(true)
      await all
    }))
})
