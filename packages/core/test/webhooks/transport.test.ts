import { once } from "node:events"
import type * as Http from "node:http"
import * as Net from "node:net"
import { startReceiver } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { afterEach, describe, expect, it, vi } from "vitest"
import * as Setting from "../../src/base/setting.ts"
import {
  AddressPolicy,
  WebhookTransport,
  addressPolicyOptions,
  bodyReader,
} from "../../src/webhooks/transport.ts"

const provided = <A, E>(
  effect: Effect.Effect<A, E, WebhookTransport>,
  allowedNetworks: ReadonlyArray<string>,
) =>
  effect.pipe(
    Effect.provide(
      Layer.provide(
        WebhookTransport.layerFetch,
        AddressPolicy.layer(Setting.parse(addressPolicyOptions, { allowedNetworks })),
      ),
    ),
    Effect.runPromise,
  )

const loopback = ["127.0.0.0/8"]

const utf8 = new TextEncoder()
const encode = (text: string): Uint8Array<ArrayBuffer> => utf8.encode(text)

/** Sends to a URL. Returns the status of the response, or the reason of the failure. */
const send = (
  url: string,
  allowedNetworks = loopback,
  headers: Readonly<Record<string, string>> = { "x-test": "1" },
): Promise<number | string> =>
  provided(
    Effect.gen(function* () {
      const transport = yield* WebhookTransport
      return yield* Effect.match(transport.send({ url, headers, body: "{}" }), {
        onSuccess: ({ status }): number | string => status,
        onFailure: ({ reason }): number | string => reason,
      })
    }),
    allowedNetworks,
  )

describe("the fetch transport", () => {
  it("posts the body with the headers", async () => {
    const receiver = await startReceiver()
    expect(await send(receiver.url)).toBe(204)
    expect(receiver.received[0]).toMatchObject({ body: "{}", headers: { "x-test": "1" } })
    receiver.close()
  })

  it("returns the response, with the first kilobyte of its body", async () => {
    const receiver = await startReceiver((response) =>
      response.writeHead(503, { "retry-after": "7" }).end("x".repeat(2000)),
    )
    const silent = await startReceiver()
    const responses = await provided(
      WebhookTransport.use(({ send: post }) =>
        Effect.forEach([receiver, silent], ({ url }) => post({ url, headers: {}, body: "{}" })),
      ),
      loopback,
    )
    expect(responses).toEqual([
      { status: 503, retryAfter: "7", body: "x".repeat(1024) },
      { status: 204, retryAfter: undefined, body: "" },
    ])
    receiver.close()
    silent.close()
  })

  it("tells that it sends no http to names", async () => {
    const transport = WebhookTransport.use((service) => Effect.succeed(service.sendsHttpToNames))
    expect(await provided(transport, loopback)).toBe(false)
  })

  it("fails with a TransportError", async () => {
    const request = { url: "http://does-not-exist.invalid/", headers: {}, body: "{}" }
    const failing = WebhookTransport.use((transport) => Effect.flip(transport.send(request)))
    expect(await provided(failing, [])).toMatchObject({
      _tag: "TransportError",
      reason: "AddressNotAllowed",
    })
  })

  it("refuses addresses that are not allowed", async () => {
    const receiver = await startReceiver()
    const { port } = new URL(receiver.url)
    for (const host of ["127.0.0.1", "2130706433", "[::1]", "localhost"]) {
      expect(await send(`http://${host}:${port}/`, [])).toBe("AddressNotAllowed")
    }
    expect(receiver.received).toEqual([])
    receiver.close()
  })

  it("sends to names over https only", async () => {
    expect(await send("http://does-not-exist.invalid/")).toBe("AddressNotAllowed")
    expect(await send("https://does-not-exist.invalid/")).toMatch(/^(ENOTFOUND|EAI_AGAIN)$/)
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
    const closed = new Promise<void>((resolve) => {
      void startReceiver((response) => {
        response.on("close", resolve)
        const pour = (): void => {
          while (!response.destroyed && response.write("x".repeat(16_384)));
        }
        response.on("drain", pour)
        pour()
      }).then(async (receiver) => {
        expect(await send(receiver.url)).toBe(200)
        receiver.close()
      })
    })
    await closed
  })

  it("closes the connection when it is interrupted", async () => {
    let arrived: () => void = () => {}
    const arrival = new Promise<void>((resolve) => (arrived = resolve))
    const responses: Array<Http.ServerResponse> = []
    const receiver = await startReceiver((response) => {
      responses.push(response)
      arrived()
    })
    await provided(
      Effect.gen(function* () {
        const transport = yield* WebhookTransport
        const request = { url: receiver.url, headers: {}, body: "{}" }
        const sending = yield* Effect.forkChild(transport.send(request))
        yield* Effect.promise(() => arrival)
        yield* Fiber.interrupt(sending)
      }),
      ["127.0.0.0/8"],
    )
    const [response] = responses
    if (response?.destroyed === false) {
      await new Promise((resolve) => response.once("close", resolve))
    }
    expect(response?.destroyed).toBe(true)
    receiver.close()
  })

  it("returns the code of the failure, or its name", async () => {
    const receiver = await startReceiver()
    receiver.close()
    expect(await send(receiver.url)).toBe("ECONNREFUSED")
    expect(await send(receiver.url, loopback, { "x test": "1" })).toBe("TypeError")
  })
})

// No server decides how a runtime cuts a body, or what its fetch throws.
describe("the fetch of a runtime", () => {
  afterEach(() => void vi.unstubAllGlobals())

  const https = "https://receiver.example/"

  it("may return a body in chunks", async () => {
    vi.stubGlobal("fetch", async () => new Response(ReadableStream.from(["a", "b"].map(encode))))
    const sending = WebhookTransport.use((transport) =>
      transport.send({ url: https, headers: {}, body: "{}" }),
    )
    expect(await provided(sending, [])).toMatchObject({ status: 200, body: "ab" })
  })

  it("may break off in the body: the status counts", async () => {
    const breaking = async function* () {
      yield encode("half")
      throw new TypeError("terminated")
    }
    const body = ReadableStream.from(breaking())
    vi.stubGlobal("fetch", async () => new Response(body, { headers: { "retry-after": "7" } }))
    const received: Array<unknown> = []
    const sending = WebhookTransport.use((transport) =>
      transport.send({ url: https, headers: {}, body: "{}" }, (given) => received.push(given())),
    )
    const response = { status: 200, retryAfter: "7", body: "half" }
    expect(await provided(sending, [])).toEqual(response)
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
    for (const chunk of [bytes.subarray(0, 1), bytes.subarray(1, 1000), bytes.subarray(1000)]) {
      expect(add(chunk)).toBe(true)
    }
    expect(add(bytes)).toBe(true)
    expect(text()).toBe("ü".padEnd(kilobyte - 1, "x"))
  })

  it("reads on until it has more than 64 KiB", () => {
    const { add } = bodyReader()
    expect(add(new Uint8Array(64 * kilobyte))).toBe(true)
    expect(add(new Uint8Array(0))).toBe(true)
    expect(add(new Uint8Array(1))).toBe(false)
  })
})
