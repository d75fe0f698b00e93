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
    "64:ff9b::808:808",
    "64:FF9B::5DB8:D822",
    "64:ff9b:1::8.8.8.8",
    "64:ff9b:1:808:8:800::",
    "2002:808:808::1",
    "2606:4700::5efe:808:808",
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
    "64:ff9b::",
    "64:ff9b::7f00:1",
    "64:ff9b::10.0.0.1",
    "64:ff9b::169.254.169.254",
    "64:ff9b::168.63.129.16",
    "64:ff9b:0:0:0:1:808:808",
    "64:ff9b:1::1",
    "64:ff9b:1::10.0.0.1",
    "64:ff9b:1:a00:0:100:808:808",
    "64:ff9b:1:a:0:1:808:808",
    "64:ff9b:1:0:a:0:108:808",
    "64:ff9b:2::8.8.8.8",
    "::8.8.8.8",
    "::ffff:0:8.8.8.8",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2001:0:808:808::f7f7:f7f7",
    "2002:7f00:1::",
    "2002:a00:1::808:808",
    "2606:4700::5efe:a00:1",
    "2606:4700::200:5efe:a00:1",
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

  it.each(["::ffff:", "64:ff9b::", "2606:4700::5efe:"])(
    "is public behind %s, too, and others are not",
    (prefix) => {
      fc.assert(
        fc.property(fc.oneof(fc.ipV4(), fc.constantFrom("10.1.2.3", "127.0.0.1")), (text) => {
          const inside = isPublic(NetAddress.ipFromStringUnsafe(text))
          expect(isPublic(NetAddress.ipFromStringUnsafe(prefix + text))).toBe(inside)
        }),
      )
    },
  )

  it("has no private address inside by any length of a translator's prefix", () => {
    const bytes = fc.uint8Array({ minLength: 10, maxLength: 10 })
    fc.assert(
      fc.property(bytes, fc.constantFrom([0, 1, 3, 4], [1, 3, 4, 5], [3, 4, 5, 6]), (last, at) => {
        const octets = Uint8Array.of(0, 0x64, 0xff, 0x9b, 0, 1, ...last)
        at.forEach((position, index) => (octets[6 + position] = [10, 1, 2, 3][index] ?? 0))
        expect(isPublic(NetAddress.ipv6FromBytesUnsafe(octets))).toBe(false)
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

  it("permit translated addresses by what is inside, or by themselves", () => {
    expect(permits("http://[64:ff9b::10.1.2.3]/", "10.1.0.0/16")).toBe(true)
    expect(permits("http://[64:ff9b:1::10.1.2.3]/", "10.1.0.0/16")).toBe(true)
    expect(permits("http://[64:ff9b::10.2.2.3]/", "10.1.0.0/16")).toBe(false)
    expect(permits("http://[64:ff9b::10.2.2.3]/", "64:ff9b::/96")).toBe(true)
  })

  it.each(["10.0.0.0", "10.0.0.1/8", "10.0.0.0/33", "localhost", ""])("cannot be %j", (text) => {
    expect(() => policy(text)).toThrow("allowedNetworks")
  })

  it("are none by default", () => {
    expect(Setting.parse(addressPolicyOptions).allowedNetworks).toEqual([])
  })
})
