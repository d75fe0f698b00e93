import * as Effect from "effect/Effect"
import * as NetAddress from "effect/net/NetAddress"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import * as Setting from "../../src/base/setting.ts"
import {
  AddressPolicy,
  addressPolicyOptions,
  hostOf,
  isPublic,
  permitsHost,
} from "../../src/webhooks/transport.ts"

const policy = (...allowedNetworks: ReadonlyArray<string>) =>
  Effect.runSync(
    Effect.provide(
      Effect.map(AddressPolicy, (service) => service),
      AddressPolicy.layer(Setting.parse(addressPolicyOptions, { allowedNetworks })),
    ),
  )

/** Tells whether the host of a URL is permitted, in the spelling of `URL.hostname`. */
const permits = (url: string, ...allowedNetworks: ReadonlyArray<string>): boolean =>
  permitsHost(policy(...allowedNetworks), new URL(url).hostname)

describe("a public address", () => {
  it.each([
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "172.15.255.255",
    "172.32.0.0",
    "2606:4700::1111",
  ])("is %s", (text) => {
    expect(isPublic(NetAddress.ipFromStringUnsafe(text))).toBe(true)
  })

  it.each([
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "192.31.196.1",
    "192.52.193.1",
    "192.88.99.1",
    "192.168.1.1",
    "192.175.48.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::7f00:1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2620:4f:8000::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "fd00:ec2::254",
  ])("is not %s", (text) => {
    expect(isPublic(NetAddress.ipFromStringUnsafe(text))).toBe(false)
  })

  it("is public in its IPv4-mapped form, too", () => {
    fc.assert(
      fc.property(fc.ipV4(), (text) => {
        const mapped = isPublic(NetAddress.ipFromStringUnsafe(`::ffff:${text}`))
        expect(mapped).toBe(isPublic(NetAddress.ipFromStringUnsafe(text)))
      }),
    )
  })
})

describe("the host of a URL", () => {
  it.each([
    "http://127.0.0.1/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f.0.0.1/",
    "http://0177.0.0.1/",
    "http://127.0.0.1./",
    "http://[::1]/",
    "http://[::ffff:7f00:1]/",
    "http://①②⑦.0.0.1/",
    "http://localhost/",
    "http://LOCALHOST./",
    "http://app.localhost:8080/",
    "http://169.254.169.254/latest/meta-data",
  ])("is refused in %s unless its network is allowed", (url) => {
    expect(permits(url)).toBe(false)
    expect(permits(url, "127.0.0.0/8", "::1/128", "169.254.0.0/16")).toBe(true)
  })

  it("is permitted if it is a name, which is checked when it is resolved", () => {
    expect(permits("https://internal.example/")).toBe(true)
    for (const name of ["notlocalhost", "localhost.example", "localhost.example.com."]) {
      expect(hostOf(name)).toEqual({ _tag: "Name", name })
    }
  })

  it("is permitted as localhost if a loopback network is allowed", () => {
    expect(permits("http://localhost/", "127.0.0.0/8")).toBe(true)
    expect(permits("http://localhost/", "::1/128")).toBe(true)
    expect(permits("http://localhost/", "10.0.0.0/8")).toBe(false)
  })
})

describe("allowed networks", () => {
  it("permit their addresses, and no other addresses that are not public", () => {
    expect(permits("http://10.1.2.3/", "10.1.0.0/16")).toBe(true)
    expect(permits("http://10.2.2.3/", "10.1.0.0/16")).toBe(false)
    expect(permits("http://8.8.8.8/", "10.1.0.0/16")).toBe(true)
  })

  it("permit IPv4-mapped addresses, too", () => {
    expect(permits("http://[::ffff:10.1.2.3]/", "10.1.0.0/16")).toBe(true)
  })

  it.each(["10.0.0.0", "10.0.0.1/8", "10.0.0.0/33", "localhost", ""])("cannot be %j", (text) => {
    expect(() => policy(text)).toThrow("allowedNetworks")
  })

  it("are none by default", () => {
    expect(Setting.parse(addressPolicyOptions).allowedNetworks).toEqual([])
  })
})
