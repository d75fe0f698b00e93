import { createSocket } from "node:dgram"
import { Resolver } from "node:dns"
import { lookup } from "node:dns/promises"
import { once } from "node:events"
import { describe, expect, it } from "vitest"
import { makeResolve, type Resolve } from "../src/resolveName.ts"

/** Runs a test with a name server that hears questions and answers none. */
const withSilentServer = async (
  test: (resolve: Resolve, heard: () => Promise<unknown>) => Promise<void>,
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

describe("looking up a name", () => {
  it("finds those in the machine's own table without asking", () =>
    withSilentServer(async (resolve) => {
      const loopback = { address: "127.0.0.1", family: 4 }
      expect(await outcomeOf(resolve, "LOCALHOST.")).toContainEqual(loopback)
    }))

  it("fails for those that no name server answers for", () =>
    withSilentServer(async (resolve) => {
      expect(await outcomeOf(resolve, "name.example")).toBe("ETIMEOUT")
    }))

  it("holds up no other, however many are not answered", () =>
    withSilentServer(async (resolve, heard) => {
      const hanging = Array.from({ length: 64 }, (_, index) =>
        outcomeOf(resolve, `name-${index}.example`),
      )
      await heard()
      let isHanging = true
      const all = Promise.all(hanging).then(() => (isHanging = false))
      expect(await outcomeOf(resolve, "localhost")).toContainEqual({
        address: "127.0.0.1",
        family: 4,
      })
      // What takes a thread finds one.
      await lookup("localhost")
      expect(isHanging).toBe(true)
      await all
    }))
})
