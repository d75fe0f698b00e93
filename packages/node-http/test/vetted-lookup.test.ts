import { Setting, addressPolicyOptions } from "@tenure/core/internal"
import { AddressPolicy } from "@tenure/core/transport"
import { startReceiver } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import { describe, expect, it, onTestFinished } from "vitest"
import { type Resolve, makeDial } from "../src/dial.ts"
import { makeVettedResolve } from "../src/transport.ts"

const policyOf = (...allowedNetworks: ReadonlyArray<string>) =>
  Effect.runSync(
    Effect.provide(
      AddressPolicy.use((policy) => Effect.succeed(policy)),
      AddressPolicy.layer(Setting.parse(addressPolicyOptions, { allowedNetworks })),
    ),
  )

/** A resolver that returns the given answers, one for each look-up. */
const resolver = (...answers: ReadonlyArray<ReadonlyArray<string>>) => {
  const names: Array<string> = []
  const resolve: Resolve = (hostname, callback) => {
    const addresses = answers[names.length] ?? []
    names.push(hostname)
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    )
  }
  return { names, resolve }
}

const lookUp = (
  allowed: ReadonlyArray<string>,
  resolve: Resolve,
  hostname = "name.example",
): Promise<unknown> =>
  new Promise((done) => {
    const vetted = makeVettedResolve(policyOf(...allowed), resolve)
    vetted(hostname, (error, addresses) => done(error?.code ?? addresses))
  })

describe("a host name", () => {
  it("resolves to all its addresses if each is public", async () => {
    const { resolve } = resolver(["93.184.216.34", "2606:2800::1"])
    expect(await lookUp([], resolve)).toEqual([
      { address: "93.184.216.34", family: 4 },
      { address: "2606:2800::1", family: 6 },
    ])
  })

  it("is refused if any of its addresses is not public", async () => {
    for (const address of [
      "127.0.0.1",
      "10.0.0.1",
      "::1",
      "::ffff:10.0.0.1",
      "fe80::1%eth0",
      "x",
    ]) {
      const { resolve } = resolver(["93.184.216.34", address])
      expect(await lookUp([], resolve)).toBe("AddressNotAllowed")
    }
  })

  it("is refused if it has no address", async () => {
    expect(await lookUp([], resolver([]).resolve)).toBe("AddressNotAllowed")
  })

  it("is checked again for each connection", async () => {
    const { resolve } = resolver(["93.184.216.34"], ["127.0.0.1"])
    expect(await lookUp([], resolve)).toHaveLength(1)
    expect(await lookUp([], resolve)).toBe("AddressNotAllowed")
  })

  it("fails with the error of its look-up", async () => {
    const resolve: Resolve = (_hostname, callback) =>
      callback(Object.assign(new Error("no such name"), { code: "ENOTFOUND" }), [])
    expect(await lookUp([], resolve)).toBe("ENOTFOUND")
  })

  it("under localhost is not looked up, and resolves to the permitted loopback addresses", async () => {
    const { names, resolve } = resolver()
    const both = ["127.0.0.0/8", "::1/128"]
    expect(await lookUp(both, resolve, "localhost")).toHaveLength(2)
    expect(await lookUp(["127.0.0.0/8"], resolve, "app.localhost")).toEqual([
      { address: "127.0.0.1", family: 4 },
    ])
    expect(await lookUp([], resolve, "localhost")).toBe("AddressNotAllowed")
    expect(names).toEqual([])
  })

  it("is resolved once for a connection, which uses that address", async () => {
    const receiver = await startReceiver()
    onTestFinished(receiver.close)
    const { names, resolve } = resolver(["127.0.0.1"], ["10.0.0.1"])
    const dial = makeDial(makeVettedResolve(policyOf("127.0.0.0/8"), resolve))
    const { port } = new URL(receiver.url)
    const address = await new Promise((done) =>
      dial("name.example", Number(port), (error, socket) => {
        done(error ?? socket?.remoteAddress)
        socket?.destroy()
      }),
    )
    expect(address).toBe("127.0.0.1")
    expect(names).toEqual(["name.example"])
  })
})
