import * as IpNetwork from "effect/net/IpNetwork"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  type ApiRequest,
  type Scheme,
  emptyBody,
  makeClientAddress,
  makeScheme,
  makeUntrustedPeer,
} from "../../src/http/request.ts"

const addressOf = (
  remoteAddress: string | undefined,
  forwardedFor?: string | ReadonlyArray<string>,
  ...trusted: ReadonlyArray<string>
): string => {
  const request: ApiRequest = {
    method: "GET",
    path: "/",
    headers: forwardedFor === undefined ? {} : { "x-forwarded-for": forwardedFor },
    body: emptyBody,
    remoteAddress,
  }
  return makeClientAddress(trusted.map(IpNetwork.fromStringUnsafe))(request)
}

describe("the peer whose X-Forwarded-For is ignored", () => {
  const peers = (trusted: ReadonlyArray<string>, ...sent: ReadonlyArray<[string, string?]>) => {
    const peerOf = makeUntrustedPeer(trusted.map(IpNetwork.fromStringUnsafe))
    return sent.map(([remoteAddress, forwardedFor]) =>
      peerOf({
        method: "GET",
        path: "/",
        headers: forwardedFor === undefined ? {} : { "x-forwarded-for": forwardedFor },
        body: emptyBody,
        remoteAddress,
      }),
    )
  }

  it("is returned once, without the field", () => {
    expect(peers([], ["10.0.0.1"], ["10.0.0.1", "203.0.113.7"], ["10.0.0.2", "x\nx"])).toEqual([
      undefined,
      "10.0.0.1",
      undefined,
    ])
    expect(peers([], ["::ffff:10.0.0.1", "\u001b[31m"])).toEqual(["10.0.0.1"])
    expect(peers([], ["fe80::1%eth0", "203.0.113.7"])).toEqual(["fe80::1"])
    expect(peers([], ["not an address", "203.0.113.7"])).toEqual([undefined])
  })

  it("is returned although there are trusted proxies, until one of them has sent a request", () => {
    const trusted = ["10.0.0.0/8"]
    const proxy = "10.0.0.1"
    const other: [string, string] = ["192.0.2.1", "203.0.113.7"]
    expect(peers(trusted, other, other)).toEqual(["192.0.2.1", undefined])
    expect(peers(trusted, [proxy, "203.0.113.7"], other)).toEqual([undefined, undefined])
    expect(peers(trusted, [proxy], other)).toEqual([undefined, "192.0.2.1"])
  })

  it("is none if the host has read the field itself", () => {
    expect(peers([], ["203.0.113.7", "203.0.113.7, 10.0.0.1"])).toEqual([undefined])
    expect(peers([], ["203.0.113.7", "9.9.9.9,[203.0.113.7]:80"])).toEqual([undefined])
  })
})

describe("the client's address", () => {
  it("is that of the socket, whatever X-Forwarded-For says", () => {
    expect(addressOf("203.0.113.7")).toBe("203.0.113.7")
    expect(addressOf("203.0.113.7", "1.2.3.4")).toBe("203.0.113.7")
    expect(addressOf("203.0.113.7", "1.2.3.4", "10.0.0.0/8")).toBe("203.0.113.7")
  })

  it("is the IPv4 address on a dual-stack socket", () => {
    expect(addressOf("::ffff:203.0.113.7")).toBe("203.0.113.7")
    expect(addressOf("::ffff:10.0.0.1", "203.0.113.7", "10.0.0.0/8")).toBe("203.0.113.7")
  })

  it("is the /64 of an IPv6 address", () => {
    expect(addressOf("2001:db8:1:2::1")).toBe("2001:db8:1:2::/64")
    expect(addressOf("2001:db8:1:2:ffff:ffff:ffff:ffff")).toBe("2001:db8:1:2::/64")
    expect(addressOf("2001:db8:1:3::1")).toBe("2001:db8:1:3::/64")
    expect(addressOf("fe80::1%eth0")).toBe("fe80:0:0:0::/64")
  })

  it("is the same for all sockets without an address", () => {
    expect(addressOf(undefined)).toBe("local")
    expect(addressOf(undefined, "1.2.3.4", "0.0.0.0/0")).toBe("local")
  })

  it("is unknown if the host passes text that is not an address", () => {
    for (const text of [
      "",
      "x",
      "unknown",
      "1.2.3",
      "1.2.3.4.5",
      "999.1.1.1",
      "::ffff:x",
      "1::2::3",
    ]) {
      expect(addressOf(text)).toBe("local")
      expect(addressOf(text, "1.2.3.4", "0.0.0.0/0")).toBe("local")
    }
    expect(addressOf("203.0.113.7:4711")).toBe("203.0.113.7")
    expect(addressOf("[2001:db8::1]:4711")).toBe("2001:db8:0:0::/64")
  })

  it("is what a trusted proxy says", () => {
    expect(addressOf("10.0.0.1", "203.0.113.7", "10.0.0.0/8")).toBe("203.0.113.7")
    expect(addressOf("10.0.0.1", undefined, "10.0.0.0/8")).toBe("10.0.0.1")
    expect(addressOf("10.0.0.1", "2001:db8::1", "10.0.0.0/8")).toBe("2001:db8:0:0::/64")
    expect(addressOf("fd00::1", "203.0.113.7", "fd00::/8")).toBe("203.0.113.7")
  })

  it("is the first from the right that is not a trusted proxy", () => {
    const trusted = ["10.0.0.0/8", "192.168.0.0/16"]
    expect(addressOf("10.0.0.1", "1.1.1.1, 203.0.113.7, 192.168.0.9", ...trusted)).toBe(
      "203.0.113.7",
    )
    expect(addressOf("10.0.0.1", ["1.1.1.1", "203.0.113.7,192.168.0.9"], ...trusted)).toBe(
      "203.0.113.7",
    )
    expect(addressOf("10.0.0.1", "192.168.0.8, 10.9.9.9", ...trusted)).toBe("192.168.0.8")
  })

  it.each([
    ["203.0.113.7:4711", "203.0.113.7"],
    ["[203.0.113.7]:80", "203.0.113.7"],
    ["::ffff:203.0.113.7", "203.0.113.7"],
    ["::FFFF:CB00:7107", "203.0.113.7"],
    ["[::ffff:cb00:7107]:80", "203.0.113.7"],
    ["64:ff9b::cb00:7107", "203.0.113.7"],
    ["[2001:db8::1]:4711", "2001:db8:0:0::/64"],
    ["[2001:DB8::1]", "2001:db8:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["[fe80::1%25eth0]:80", "fe80:0:0:0::/64"],
  ])("is the same from the socket and from a proxy, written as %s", (text, address) => {
    expect(addressOf(text)).toBe(address)
    expect(addressOf("10.0.0.1", text, "10.0.0.0/8")).toBe(address)
    expect(addressOf("::ffff:a00:1", `6.6.6.6, ${text}`, "10.0.0.0/8")).toBe(address)
  })

  it.each([
    "unknown",
    "_hidden",
    "for=_x",
    'for="[2001:db8::1]:4711"',
    '"[2001:db8::1]:4711"',
    "",
    ",",
    "1.2.3",
    "1.2.3.4.5",
    "1.2.3.4:x",
    "1.2.3.4%eth0",
    "[2001:db8::1",
    "2001:db8::1]",
    "[2001:db8::1]x",
    "[2001:db8::1]:",
    "%eth0",
    "::1::",
    "01.2.3.4",
  ])("is that of the proxy if the proxy says %j", (entry) => {
    expect(addressOf("10.0.0.1", entry, "10.0.0.0/8")).toBe("10.0.0.1")
  })

  it("is looked for in a bounded part of the chain", () => {
    const chain = Array.from({ length: 5000 }, () => "10.0.0.1").join(",")
    expect(addressOf("10.0.0.1", `6.6.6.6,${chain}`, "10.0.0.0/8")).toBe("10.0.0.1")
  })

  it("does not depend on entries that a client adds on the left", () => {
    const anything = fc.oneof(fc.string(), fc.ipV4(), fc.ipV6())
    fc.assert(
      fc.property(fc.array(anything), (entries) => {
        const chain = [...entries, "203.0.113.7"].join(", ")
        expect(addressOf("10.0.0.1", chain, "10.0.0.0/8")).toBe("203.0.113.7")
      }),
    )
  })
})

describe("the scheme that the client used", () => {
  const schemeOf = (
    scheme: Scheme | undefined,
    forwarded?: string | ReadonlyArray<string>,
    remoteAddress: string | undefined = "10.0.0.1",
  ): Scheme =>
    makeScheme([IpNetwork.fromStringUnsafe("10.0.0.0/8")])({
      method: "GET",
      path: "/",
      headers: forwarded === undefined ? {} : { "x-forwarded-proto": forwarded },
      body: emptyBody,
      remoteAddress,
      scheme,
    })

  it("is that of the connection", () => {
    expect(schemeOf(undefined)).toBe("http")
    expect(schemeOf("https")).toBe("https")
    expect(schemeOf(undefined, "https", "203.0.113.7")).toBe("http")
  })

  it("is what the nearest trusted proxy says", () => {
    expect(schemeOf(undefined, "https")).toBe("https")
    expect(schemeOf("https", "HTTP")).toBe("http")
    expect(schemeOf(undefined, "http, https")).toBe("https")
    expect(schemeOf(undefined, ["https", "http"])).toBe("http")
  })

  it("is that of the connection if a proxy says anything else", () => {
    for (const other of ["", "ftp", "https,", "xhttps", "https x", "h".repeat(100_000)]) {
      expect(schemeOf("https", other)).toBe("https")
    }
  })
})
