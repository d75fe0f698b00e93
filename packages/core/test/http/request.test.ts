/** The parts the API reads in a request: path, query, client address, scheme, and accepted media types. */

import * as IpNetwork from "effect/net/IpNetwork"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  type ApiRequest,
  type Scheme,
  acceptsEventStream,
  emptyBody,
  makeClientAddress,
  makeScheme,
  makeUntrustedPeer,
  pathOf,
  queryOf,
} from "../../src/http/request.ts"

type Field = string | ReadonlyArray<string>

const requestFrom = (remoteAddress: string | undefined, name = "", field?: Field): ApiRequest => ({
  method: "GET",
  path: "/",
  headers: field === undefined ? {} : { [name]: field },
  body: emptyBody,
  remoteAddress,
})

describe("the target of a request", () => {
  it.each([
    ["/a/b", "/a/b", ""],
    ["/a/b?c=/d", "/a/b", "c=/d"],
    ["/a?", "/a", ""],
    ["/a?b=%20c", "/a", "b=%20c"],
    ["/a?b?c", "/a", "b?c"],
    ["/a#b", "/a", ""],
    ["/a?b#c", "/a", "b"],
    ["/a#b?c", "/a", ""],
    ["/?", "/", ""],
    ["http://host:80/a/b?c", "/a/b", "c"],
    ["http://host", "/", ""],
    ["http://host?a", "/", "a"],
    ["HTTPS://host/a", "/a", ""],
    ["http://[::1]:80/a", "/a", ""],
    // Anything but a plain authority is not removed.
    ["http://user@host/a", "http://user@host/a", ""],
    ["http://x;/a", "http://x;/a", ""],
    ["http://x'/a", "http://x'/a", ""],
    ["http://x:y:z/a", "http://x:y:z/a", ""],
    ["javascript://x/a", "javascript://x/a", ""],
    ["//host/a", "//host/a", ""],
    ["*", "*", ""],
    ["host:443", "host:443", ""],
    ["", "/", ""],
  ])("%j has the path %j and the query %j", (target, path, query) => {
    expect([pathOf(target), queryOf(target)]).toEqual([path, query])
  })
})

const forwarded = "x-forwarded-for"
const networksOf = (trusted: ReadonlyArray<string>) => trusted.map(IpNetwork.fromStringUnsafe)

describe("the peer whose X-Forwarded-For is ignored", () => {
  const peers = (trusted: ReadonlyArray<string>, ...sent: ReadonlyArray<[string, string?]>) => {
    const peerOf = makeUntrustedPeer(networksOf(trusted))
    return sent.map(([address, field]) => peerOf(requestFrom(address, forwarded, field)))
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
  const tens = "10.0.0.0/8"
  const everybody = "0.0.0.0/0"

  const addressOf = (address: string | undefined, field?: Field, ...trusted: Array<string>) =>
    makeClientAddress(networksOf(trusted))(requestFrom(address, forwarded, field))

  it.each([
    ["203.0.113.7", "203.0.113.7"],
    ["2001:db8:1:2::1", "2001:db8:1:2::/64"],
    ["2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"],
    ["2001:db8:1:3::1", "2001:db8:1:3::/64"],
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
  ])("is the same from the socket and from a trusted proxy, written as %s", (text, address) => {
    expect(addressOf(text)).toBe(address)
    expect(addressOf(text, "1.2.3.4")).toBe(address)
    expect(addressOf(text, "1.2.3.4", tens)).toBe(address)
    expect(addressOf("10.0.0.1", text, tens)).toBe(address)
    expect(addressOf("fd00::1", text, "fd00::/8")).toBe(address)
    expect(addressOf("::ffff:a00:1", `6.6.6.6, ${text}`, tens)).toBe(address)
  })

  it.each([
    undefined,
    "",
    "x",
    "unknown",
    "1.2.3",
    "1.2.3.4.5",
    "999.1.1.1",
    "::ffff:x",
    "1::2::3",
  ])("is local if the socket has none, or the host passes text that is none: %s", (text) => {
    expect(addressOf(text)).toBe("local")
    expect(addressOf(text, "1.2.3.4", everybody)).toBe("local")
  })

  it.each<readonly [Field | undefined, string]>([
    [undefined, "10.0.0.1"],
    ["1.1.1.1, 203.0.113.7, 192.168.0.9", "203.0.113.7"],
    [["1.1.1.1", "203.0.113.7,192.168.0.9"], "203.0.113.7"],
    ["192.168.0.8, 10.9.9.9", "192.168.0.8"],
    // Only the chain's end is read.
    [`6.6.6.6,${Array.from({ length: 5000 }, () => "10.0.0.1").join(",")}`, "10.0.0.1"],
  ])("is the first from the right that is not a trusted proxy: %.40j", (field, address) => {
    expect(addressOf("10.0.0.1", field, tens, "192.168.0.0/16")).toBe(address)
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
    expect(addressOf("10.0.0.1", entry, tens)).toBe("10.0.0.1")
  })

  it("does not depend on entries that a client adds on the left", () => {
    const anything = fc.oneof(fc.string(), fc.ipV4(), fc.ipV6())
    fc.assert(
      fc.property(fc.array(anything), (entries) => {
        const chain = [...entries, "203.0.113.7"].join(", ")
        expect(addressOf("10.0.0.1", chain, tens)).toBe("203.0.113.7")
      }),
    )
  })
})

describe("the scheme that the client used", () => {
  const schemeOf = (scheme: Scheme | undefined, field?: Field, address = "10.0.0.1"): Scheme =>
    makeScheme(networksOf(["10.0.0.0/8"]))({
      ...requestFrom(address, "x-forwarded-proto", field),
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

describe("a client that accepts", () => {
  it.each([
    "text/event-stream",
    "TEXT/Event-Stream;charset=utf-8",
    "text/event-stream, */*",
    "text/event-stream, application/*",
    "application/json;q=0.9, text/event-stream",
    "text/event-stream;q=0.5, */*;q=0.1",
    "text/html, text/event-stream ; q=0.2",
    ["application/json;q=0.1", "text/event-stream"],
  ])("%j gets a stream", (accept) => {
    expect(acceptsEventStream({ accept })).toBe(true)
  })

  it.each([
    undefined,
    "",
    "*/*",
    "text/*",
    "application/json",
    "text/html",
    "application/json, text/event-stream",
    "text/event-stream;q=0",
    "text/event-stream;q=0, */*;q=0",
    "text/event-stream;q=0.5, */*",
    "text/event-stream;q=0.5, application/*;q=0.6",
    "text/event-stream;q=high",
    "text/event-streams",
    "*/*, text/event-stream;q=0.9",
  ])("%j gets JSON", (accept) => {
    expect(acceptsEventStream({ accept })).toBe(false)
  })

  it("anything gets a stream only if it names it", () => {
    fc.assert(
      fc.property(fc.string(), (accept) => {
        if (!/text\/event-stream/i.test(accept)) expect(acceptsEventStream({ accept })).toBe(false)
      }),
    )
    expect(acceptsEventStream(Object.create({ accept: "text/event-stream" }))).toBe(false)
  })
})
