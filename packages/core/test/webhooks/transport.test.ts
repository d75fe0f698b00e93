/** Permitted webhook addresses and URLs, and the transport by fetch. */

import { once } from "node:events"
import type * as Http from "node:http"
import * as Net from "node:net"
import { startReceiver } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as NetAddress from "effect/net/NetAddress"
import * as Result from "effect/Result"
import fc from "fast-check"
import { afterEach, describe, expect, it, vi } from "vitest"
import * as Setting from "../../src/base/setting.ts"
import {
  AddressPolicy,
  type TransportRequest,
  type WebhookUrlRules,
  WebhookTransport,
  addressPolicyOptions,
  bodyReader,
  decodeWebhookUrl,
  hostOf,
  isPublic,
  maxWebhookUrlLength,
  permitsHost,
} from "../../src/webhooks/transport.ts"

const policyLayer = (allowedNetworks: ReadonlyArray<string>) =>
  AddressPolicy.layer(Setting.parse(addressPolicyOptions, { allowedNetworks }))

const isPublicText = (text: string) => isPublic(NetAddress.ipFromStringUnsafe(text))

/** Tells whether a URL's host is permitted, as spelled by `URL.hostname`. */
const permits = (url: string, ...allowedNetworks: ReadonlyArray<string>): boolean =>
  AddressPolicy.useSync((policy) => permitsHost(policy, new URL(url).hostname)).pipe(
    Effect.provide(policyLayer(allowedNetworks)),
    Effect.runSync,
  )

/** Returns the texts with an unexpected verdict: none. */
const unlike = (expected: boolean, texts: string) =>
  texts.split(" ").filter((text) => isPublicText(text) !== expected)

describe("a public address", () => {
  it.each([
    ["global", "1.1.1.1 8.8.8.8 93.184.216.34 2606:4700::1111"],
    ["just outside 172.16.0.0/12", "172.15.255.255 172.32.0.0"],
    ["translated", "64:ff9b::808:808 64:FF9B::5DB8:D822"],
    ["translated by an operator", "64:ff9b:1::8.8.8.8 64:ff9b:1:808:8:800::"],
    ["6to4 or ISATAP to a public address", "2002:808:808::1 2606:4700::5efe:808:808"],
  ])("is %s: %s", (_name, texts) => {
    expect(unlike(true, texts)).toEqual([])
  })

  it.each([
    ["this network", "0.0.0.0 :: ::8.8.8.8"],
    ["loopback", "127.0.0.1 127.255.255.254 ::1 ::7f00:1"],
    ["private", "10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 fc00::1 fd12:3456::1"],
    ["shared by a carrier", "100.64.0.1"],
    ["link-local or site-local", "169.254.169.254 fe80::1 fec0::1"],
    ["a cloud's metadata service", "168.63.129.16 fd00:ec2::254"],
    ["of the IETF or a sink", "192.0.0.1 192.31.196.1 192.52.193.1 192.175.48.1 2620:4f:8000::1"],
    ["for documentation", "192.0.2.1 198.51.100.1 203.0.113.1 2001:db8::1 3fff::1"],
    ["for benchmarks", "198.18.0.1"],
    ["a relay of 6to4", "192.88.99.1"],
    ["multicast", "224.0.0.1 ff02::1"],
    ["reserved", "240.0.0.1 255.255.255.255 100::1 5f00::1"],
    ["mapped from IPv4", "::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:0:8.8.8.8"],
    ["Teredo", "2001::1 2001:0:808:808::f7f7:f7f7"],
    ["6to4 to another", "2002:7f00:1:: 2002:a00:1::808:808"],
    ["ISATAP to another", "2606:4700::5efe:a00:1 2606:4700::200:5efe:a00:1"],
    [
      "translated to another",
      "64:ff9b:: 64:ff9b::7f00:1 64:ff9b::10.0.0.1 64:ff9b::169.254.169.254 64:ff9b::168.63.129.16",
    ],
    ["beside a translator's prefix", "64:ff9b:0:0:0:1:808:808 64:ff9b:2::8.8.8.8"],
    [
      "translated by an operator to another",
      "64:ff9b:1::1 64:ff9b:1::10.0.0.1 64:ff9b:1:a00:0:100:808:808 64:ff9b:1:a:0:1:808:808 64:ff9b:1:0:a:0:108:808",
    ],
  ])("is not %s: %s", (_name, texts) => {
    expect(unlike(false, texts)).toEqual([])
  })

  it.each(["::ffff:", "64:ff9b::", "2606:4700::5efe:"])(
    "is public behind %s, too, and others are not",
    (prefix) => {
      fc.assert(
        fc.property(fc.oneof(fc.ipV4(), fc.constantFrom("10.1.2.3", "127.0.0.1")), (text) => {
          expect(isPublicText(prefix + text)).toBe(isPublicText(text))
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

  it.each([
    ["http://localhost/", "127.0.0.0/8", true],
    ["http://localhost/", "::1/128", true],
    ["http://localhost/", "10.0.0.0/8", false],
    ["http://10.1.2.3/", "10.1.0.0/16", true],
    ["http://10.2.2.3/", "10.1.0.0/16", false],
    ["http://8.8.8.8/", "10.1.0.0/16", true],
    // A mapped or translated address is permitted by its inner address, or by itself.
    ["http://[::ffff:10.1.2.3]/", "10.1.0.0/16", true],
    ["http://[64:ff9b::10.1.2.3]/", "10.1.0.0/16", true],
    ["http://[64:ff9b:1::10.1.2.3]/", "10.1.0.0/16", true],
    ["http://[64:ff9b::10.2.2.3]/", "10.1.0.0/16", false],
    ["http://[64:ff9b::10.2.2.3]/", "64:ff9b::/96", true],
  ])("in %s is permitted if %s is allowed: %s", (url, network, expected) => {
    expect(permits(url, network)).toBe(expected)
  })
})

describe("allowed networks", () => {
  it.each(["10.0.0.0", "10.0.0.1/8", "10.0.0.0/33", "localhost", ""])("cannot be %j", (text) => {
    expect(() => policyLayer([text])).toThrow("allowedNetworks")
  })

  it("are none by default", () => {
    expect(Setting.parse(addressPolicyOptions).allowedNetworks).toEqual([])
  })
})

describe("the URL of a webhook", () => {
  const lenient: WebhookUrlRules = {
    requireHttps: false,
    sendsHttpToNames: true,
    permitsHost: () => true,
  }

  /** Returns the URL, or the error's message. */
  const outcome = (input: unknown, rules: Partial<WebhookUrlRules> = {}): string =>
    Result.match(decodeWebhookUrl(input, { ...lenient, ...rules }), {
      onSuccess: (url) => url,
      onFailure: ({ _tag, message }) => `${_tag}: ${message}`,
    })

  const accepts = (url: string, rules?: Partial<WebhookUrlRules>): boolean =>
    outcome(url, rules) === url

  /** Returns a URL with this many characters. */
  const urlOf = (length: number): string => "https://receiver.example/".padEnd(length, "a")

  const webUrls = fc.webUrl({
    validSchemes: ["http", "https"],
    withFragments: true,
    withQueryParameters: true,
  })

  it("is returned unchanged", () => {
    fc.assert(fc.property(webUrls, (url) => void expect(outcome(url)).toBe(url)))
    for (const url of [
      "HTTPS://receiver.example",
      "hTTp://a.example",
      urlOf(maxWebhookUrlLength),
    ]) {
      expect(outcome(url)).toBe(url)
    }
  })

  it("has the scheme http or https, no credentials, and at most `maxLength` characters", () => {
    const texts = fc.oneof(
      fc.string({ unit: "binary", maxLength: 40 }),
      fc
        .tuple(fc.constantFrom("http:", "https:", "ftp:", "//"), fc.string())
        .map((parts) => parts.join("//")),
      fc.webUrl({ validSchemes: ["http", "https", "ws", "file"] }),
    )
    fc.assert(
      fc.property(texts, (text) => {
        if (!accepts(text)) return
        const { password, protocol, username } = new URL(text)
        expect(["http:", "https:"]).toContain(protocol)
        expect(username + password).toBe("")
        expect(text.length).toBeLessThanOrEqual(maxWebhookUrlLength)
      }),
    )
  })

  it("is refused with a space, a control character or an invisible character", () => {
    const odd = fc.constantFrom(" ", "\t", "\n", "\0", "\u00a0", "\u200b", "\u2028", "\\", "\ud800")
    fc.assert(
      fc.property(webUrls, odd, fc.nat(), (url, character, at) => {
        const index = at % (url.length + 1)
        expect(accepts(url.slice(0, index) + character + url.slice(index))).toBe(false)
      }),
    )
  })

  it("is refused if it is not a string", () => {
    fc.assert(
      fc.property(fc.anything(), (input) => {
        fc.pre(typeof input !== "string")
        expect(outcome(input)).toBe("InvalidWebhookUrl: url is required and must be a string")
      }),
    )
  })

  it("has a host that is permitted, in the spelling of URL.hostname", () => {
    fc.assert(
      fc.property(webUrls, fc.boolean(), (url, isPermitted) => {
        const asked: Array<string> = []
        const permitsOne = (host: string) => asked.push(host) > 0 && isPermitted
        expect(accepts(url, { permitsHost: permitsOne })).toBe(isPermitted)
        expect(asked).toEqual([new URL(url).hostname])
      }),
    )
  })

  it("has https if that is required", () => {
    fc.assert(
      fc.property(webUrls, (url) => {
        expect(accepts(url, { requireHttps: true })).toBe(url.startsWith("https:"))
      }),
    )
  })

  it("has https or an address if the transport sends no http to names", () => {
    const rules = { sendsHttpToNames: false }
    const addresses = fc.oneof(fc.ipV4(), fc.constant("[2606:4700::1111]"))
    fc.assert(
      fc.property(fc.domain(), addresses, (name, address) => {
        expect(accepts(`https://${name}/`, rules)).toBe(true)
        expect(accepts(`http://${address}/`, rules)).toBe(true)
        expect(accepts(`http://${name}/`, rules)).toBe(false)
      }),
    )
  })

  const absolute = "must be a valid absolute http or https URL"

  it.each([
    [undefined, "is required and must be a string"],
    [urlOf(maxWebhookUrlLength + 1), `must be at most ${maxWebhookUrlLength} characters`],
    ["", absolute],
    ["receiver.example", absolute],
    ["ftp://receiver.example/", absolute],
    ["https:receiver.example", absolute],
    ["https:///receiver.example", absolute],
    ["https://user@receiver.example/", "must not contain credentials"],
    ["https://:pass@receiver.example/", "must not contain credentials"],
  ])("%j %s", (url, problem) => {
    expect(outcome(url)).toBe(`InvalidWebhookUrl: url ${problem}`)
  })

  it.each([
    [{ requireHttps: true }, "must use https"],
    [{ sendsHttpToNames: false }, "must use https: this service sends http to IP addresses only"],
    [
      { permitsHost: () => false },
      "must not point to a private address, unless webhooks.allowedNetworks of the server includes it",
    ],
  ])("by the rules %j %s", (rules, problem) => {
    expect(outcome("http://a.example/", rules)).toBe(`InvalidWebhookUrl: url ${problem}`)
  })
})

const loopback = ["127.0.0.0/8"]

const utf8 = new TextEncoder()
const encode = (text: string): Uint8Array<ArrayBuffer> => utf8.encode(text)

type Service = WebhookTransport["Service"]

/** Runs with the transport by fetch. */
const fetching = <A, E>(
  use: (transport: Service) => Effect.Effect<A, E>,
  allowedNetworks: ReadonlyArray<string> = loopback,
): Promise<A> =>
  WebhookTransport.use(use).pipe(
    Effect.provide(Layer.provide(WebhookTransport.layerFetch, policyLayer(allowedNetworks))),
    Effect.runPromise,
  )

const requestTo = (url: string): TransportRequest => ({ url, headers: {}, body: "{}" })

/** Sends to a URL. Returns the response's status, or the failure's reason. */
const send = (url: string, request: Partial<TransportRequest> = {}, allowedNetworks = loopback) =>
  fetching(
    (transport) =>
      Effect.match(transport.send({ ...requestTo(url), ...request }), {
        onSuccess: ({ status }): number | string => status,
        onFailure: ({ reason }): number | string => reason,
      }),
    allowedNetworks,
  )

describe("the fetch transport", () => {
  it("posts the body with the headers, and returns the response with its first kilobyte", async () => {
    const receiver = await startReceiver((response) =>
      response.writeHead(503, { "retry-after": "7" }).end("x".repeat(2000)),
    )
    const silent = await startReceiver()
    const responses = await fetching((transport) =>
      Effect.forEach([receiver, silent], ({ url }) =>
        transport.send({ url, headers: { "x-test": "1" }, body: "{}" }),
      ),
    )
    expect(receiver.received).toMatchObject([{ body: "{}", headers: { "x-test": "1" } }])
    expect(responses).toEqual([
      { status: 503, retryAfter: "7", body: "x".repeat(1024) },
      { status: 204, retryAfter: undefined, body: "" },
    ])
    receiver.close()
    silent.close()
  })

  it("sends to names over https only, and says so", async () => {
    expect(await fetching((service) => Effect.succeed(service.sendsHttpToNames))).toBe(false)
    const toName = requestTo("http://does-not-exist.invalid/")
    expect(await fetching((transport) => Effect.flip(transport.send(toName)))).toMatchObject({
      _tag: "TransportError",
      reason: "AddressNotAllowed",
    })
    expect(await send("https://does-not-exist.invalid/")).toMatch(/^(ENOTFOUND|EAI_AGAIN)$/)
  })

  it("refuses addresses that are not allowed", async () => {
    const receiver = await startReceiver()
    const { port } = new URL(receiver.url)
    for (const host of ["127.0.0.1", "2130706433", "[::1]", "localhost"]) {
      expect(await send(`http://${host}:${port}/`, {}, [])).toBe("AddressNotAllowed")
    }
    expect(receiver.received).toEqual([])
    receiver.close()
  })

  it("does not follow redirects", async () => {
    const receiver = await startReceiver((response) =>
      response.writeHead(307, { location: "/elsewhere" }).end(),
    )
    expect(await send(receiver.url)).toBe(307)
    expect(receiver.received).toHaveLength(1)
    receiver.close()
  })

  it.each([
    ["reset", 200, "HTTP/1.1 200 A\r\nContent-Length: 9\r\n\r\nhalf"],
    ["with a body", 204, "HTTP/1.1 204 A\r\nContent-Length: 2\r\n\r\n{}"],
    ["no gzip", 200, "HTTP/1.1 200 A\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx"],
    ["a faulty chunk", 410, "HTTP/1.1 410 A\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"],
  ])("takes the status of a response that is %s: %i", async (_name, status, response) => {
    const server = Net.createServer((socket) => socket.once("data", () => socket.end(response)))
    await once(server.listen(0, "127.0.0.1"), "listening")
    const address = server.address()
    const port = typeof address === "object" ? address?.port : undefined
    expect(await send(`http://127.0.0.1:${port}/`)).toBe(status)
    server.close()
  })

  it("reads at most 64 KiB of a response", async () => {
    const closed: Array<Promise<unknown>> = []
    const receiver = await startReceiver((response) => {
      closed.push(once(response, "close"))
      const pour = (): void => {
        while (!response.destroyed && response.write("x".repeat(16_384)));
      }
      response.on("drain", pour)
      pour()
    })
    expect(await send(receiver.url)).toBe(200)
    await Promise.all(closed)
    receiver.close()
  })

  it("closes the connection when it is interrupted", async () => {
    const responses: Array<Http.ServerResponse> = []
    const receiver = await startReceiver((response) => void responses.push(response))
    await fetching((transport) =>
      Effect.gen(function* () {
        const sending = yield* Effect.forkChild(transport.send(requestTo(receiver.url)))
        yield* Effect.promise(() => receiver.until(1))
        yield* Fiber.interrupt(sending)
      }),
    )
    const [response] = responses
    if (response?.destroyed === false) await once(response, "close")
    expect(response?.destroyed).toBe(true)
    receiver.close()
  })

  it("returns the code of the failure, or its name", async () => {
    const receiver = await startReceiver()
    receiver.close()
    expect(await send(receiver.url)).toBe("ECONNREFUSED")
    expect(await send(receiver.url, { headers: { "x test": "1" } })).toBe("TypeError")
  })
})

// A server cannot control how a runtime cuts a body, or the errors from its fetch.
describe("the fetch of a runtime", () => {
  afterEach(() => void vi.unstubAllGlobals())

  const https = "https://receiver.example/"

  it("may return a body in chunks", async () => {
    vi.stubGlobal("fetch", async () => new Response(ReadableStream.from(["a", "b"].map(encode))))
    const response = await fetching((transport) => transport.send(requestTo(https)), [])
    expect(response).toMatchObject({ status: 200, body: "ab" })
  })

  it("may break off in the body: the status counts", async () => {
    const breaking = async function* () {
      yield encode("half")
      throw new TypeError("terminated")
    }
    const body = ReadableStream.from(breaking())
    vi.stubGlobal("fetch", async () => new Response(body, { headers: { "retry-after": "7" } }))
    const received: Array<unknown> = []
    const response = { status: 200, retryAfter: "7", body: "half" }
    expect(
      await fetching((transport) =>
        transport.send(requestTo(https), (given) => received.push(given())),
      ),
    ).toEqual(response)
    expect(received).toEqual([{ ...response, body: "" }])
  })

  it.each([
    ["Error", "no error"],
    ["TimeoutError", new DOMException("It has a number as code.", "TimeoutError")],
    ["E1", new TypeError("failed", { cause: Object.assign(new Error(), { code: "E1" }) })],
  ])("is named as %s for what it throws", async (reason, thrown) => {
    vi.stubGlobal("fetch", () => Promise.reject(thrown))
    expect(await send(https)).toBe(reason)
  })
})

describe("the reader of a body", () => {
  const kilobyte = 1024

  it("keeps the first kilobyte, and characters whole that come in two chunks", () => {
    const { add, text } = bodyReader()
    const bytes = encode("ü".padEnd(2 * kilobyte, "x"))
    const chunks = [bytes.subarray(0, 1), bytes.subarray(1, 1000), bytes.subarray(1000), bytes]
    expect(chunks.map(add)).toEqual([true, true, true, true])
    expect(text()).toBe("ü".padEnd(kilobyte - 1, "x"))
  })

  it("reads on until it has more than 64 KiB", () => {
    const { add } = bodyReader()
    expect([64 * kilobyte, 0, 1].map((size) => add(new Uint8Array(size)))).toEqual([
      true,
      true,
      false,
    ])
  })
})
