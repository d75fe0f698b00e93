import * as Http from "node:http"
import { createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { exchange, parseResponses, send } from "@tenure/testing/conformance"
import { describe, expect, it } from "vitest"
import { toNodeHandler } from "../src/handler.ts"
import { serve } from "../src/server.ts"
import {
  answering,
  body,
  expectEnvelope,
  extendOne,
  lines,
  ok,
  serving,
  webhooks,
} from "./support.ts"

/** The status and code of the faults that the tests below provoke. */
const faultOf = (status: number | undefined): [number, string] =>
  status === 431 ? [431, "REQUEST_HEADERS_TOO_LARGE"] : [400, "MALFORMED_REQUEST"]

const fields = (value: unknown): object => (typeof value === "object" && value ? value : {})

describe("a request that is not valid HTTP", () => {
  it.each([
    ["nonsense", lines("nonsense")],
    ["a control character in a header", lines("GET / HTTP/1.1", "Host: a", "X\u0001: b")],
    ["a header without a colon", lines("GET / HTTP/1.1", "Host: a", "nothing")],
    ["an unknown version", lines("GET / HTTP/9.9", "Host: a")],
    ["an invalid length", lines(`PATCH ${extendOne} HTTP/1.1`, "Host: a", "Content-Length: x")],
    ["two lengths", lines("GET / HTTP/1.1", "Host: a", "Content-Length: 1", "Content-Length: 2")],
    [
      "both a length and chunks, as in request smuggling",
      lines("GET / HTTP/1.1", "Host: a", "Content-Length: 5", "Transfer-Encoding: chunked"),
    ],
    ["TLS", Buffer.from("16030100c8010000c40303", "hex")],
    ["no Host header", lines("GET / HTTP/1.1", "Connection: close")],
    ["two Host headers", lines("GET / HTTP/1.1", "Host: a", "Host: b", "Connection: close")],
    [
      "an unknown transfer coding",
      lines("GET / HTTP/1.1", "Host: a", "Transfer-Encoding: gzip, chunked", "Connection: close"),
    ],
  ])("is answered 400 in an envelope: %s", (_name, packet) =>
    serving(async ({ url }) => {
      expectEnvelope(await exchange(url, packet), 400, "MALFORMED_REQUEST")
      expect((await send(url, { path: "/" })).status).toBe(404)
    }),
  )

  it("is answered 431 if the header is too long", () =>
    serving(async ({ url }) => {
      const packet = lines("GET / HTTP/1.1", "Host: a", `X: ${"x".repeat(100_000)}`)
      expectEnvelope(await exchange(url, packet), 431, "REQUEST_HEADERS_TOO_LARGE")
    }))

  it.each([
    ["a header that is too long", `X: ${"x".repeat(20_000)}`],
    ["two lengths", "Content-Length: 1\r\nContent-Length: 2"],
  ])("is answered with its method and path if these can be read: %s", (_name, field) =>
    serving(async ({ url }) => {
      const first = lines(`PATCH ${extendOne}?query HTTP/1.1`, "Host: a", field)
      const [alone] = parseResponses(await exchange(url, first))
      expect(alone?.body).toMatchObject({ method: "PATCH", path: extendOne })
      const before = lines("POST / HTTP/1.1", "Host: a", "Content-Length: 2")
      for (const earlier of [lines("GET / HTTP/1.1", "Host: a"), `${before}{}`]) {
        const raw = await exchange(url, earlier + earlier + first)
        const [one, two, failed] = parseResponses(raw)
        expect([one?.status, two?.status]).toEqual([404, 404])
        expect(failed?.body).toEqual({ ...fields(alone?.body), request_id: expect.any(String) })
        expectEnvelope(raw.slice(raw.lastIndexOf("HTTP/1.1")), ...faultOf(failed?.status))
      }
    }),
  )

  it("is answered behind other requests, also if nothing of it can be told", () =>
    serving(async ({ url }) => {
      const chunked = lines("POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked")
      for (const [earlier, rest] of [
        [lines("GET / HTTP/1.1", "Host: a"), "nonsense\r\n\r\n"],
        [`${chunked}2\r\n{}\r\n0\r\n\r\n`, lines("PATCH / HTTP/1.1", "Content-Length: x")],
        [lines("POST / HTTP/1.1", "Host: a", "Content-Length: 2"), "abBREW / HTTP/1.1\r\n\r\n"],
      ] as const) {
        const raw = await exchange(url, earlier + rest)
        const [first, failed] = parseResponses(raw)
        expect(first?.status).toBe(404)
        expect(failed?.body).toMatchObject({ method: "", path: "/", code: 400 })
        expectEnvelope(raw.slice(raw.lastIndexOf("HTTP/1.1")), 400, "MALFORMED_REQUEST")
      }
    }))

  it("is answered 415 if it has two content types", () =>
    serving(async ({ token, url }) => {
      const request = lines(
        `PATCH ${extendOne} HTTP/1.1`,
        "Host: a",
        `Authorization: Bearer ${token}`,
        "Content-Type: application/json",
        "Content-Type: text/plain",
        "Connection: close",
        `Content-Length: ${body.length}`,
      )
      expect(parseResponses(await exchange(url, request, body))[0]?.status).toBe(415)
    }))

  it("is answered after the request before it on the connection, which runs once", () =>
    serving(async ({ tenure, token, url }) => {
      const request = lines(
        `PATCH ${extendOne} HTTP/1.1`,
        "Host: a",
        `Authorization: Bearer ${token}`,
        "Content-Type: application/json",
        `Content-Length: ${body.length}`,
      )
      const raw = await exchange(url, `${request}${body}BREW / HTTP/1.1\r\n\r\n`)
      expect(parseResponses(raw)[0]?.status).toBe(200)
      const rows = await tenure.memberships.history({ projectId: "p1", userId: "1001" })
      expect(rows.map(({ action }) => action)).toEqual(["extended", "granted"])
    }))

  it("is answered 400 if a chunk of the body is invalid", () =>
    serving(async ({ url }) => {
      const head = lines(`PATCH ${extendOne} HTTP/1.1`, "Host: a", "Transfer-Encoding: chunked")
      const raw = await exchange(url, `${head}zz\r\n`)
      expectEnvelope(raw, 400, "MALFORMED_REQUEST")
      expect(parseResponses(raw)[0]?.body).toMatchObject({ method: "PATCH", path: extendOne })
    }))
})

describe("a method that Node does not know", () => {
  it("is answered 405, like any other method that the path does not allow", () =>
    serving(async ({ token, url }) => {
      for (const method of ["BREW", "constructor", "__proto__", "get"]) {
        const raw = await exchange(
          url,
          lines(`${method} ${webhooks}?x HTTP/1.1`, "Host: a", `Authorization: Bearer ${token}`),
        )
        const [response] = parseResponses(raw)
        expect(response?.status).toBe(405)
        expect(response?.headers["allow"]).toBe("GET, POST")
        expect(response?.body).toMatchObject({ method, path: webhooks, code: 405 })
      }
    }))

  it("is answered behind other requests", () =>
    serving(async ({ token, url }) => {
      const brew = lines(`BREW ${webhooks} HTTP/1.1`, "Host: a", `Authorization: Bearer ${token}`)
      const raw = await exchange(url, lines("GET / HTTP/1.1", "Host: a") + brew)
      expect(parseResponses(raw)).toMatchObject([
        { status: 404 },
        { status: 405, body: { method: "BREW", path: webhooks } },
      ])
    }))

  it("is answered 431 if the header is too long", () =>
    serving(async ({ url }) => {
      const packet = lines("BREW / HTTP/1.1", ...Array.from({ length: 15_000 }, () => "x:"))
      const raw = await exchange(url, packet)
      expectEnvelope(raw, 431, "REQUEST_HEADERS_TOO_LARGE")
      expect(parseResponses(raw)[0]?.body).toMatchObject({ method: "BREW", path: "/" })
    }))

  it("is answered 401 without a key, and 404 outside the API", () =>
    serving(async ({ url }) => {
      const without = await exchange(url, lines(`BREW ${webhooks} HTTP/1.1`, "Host: a"))
      expectEnvelope(without, 401, "UNAUTHORIZED")
      const nowhere = await exchange(url, lines("BREW /pot HTTP/1.1", "Host: a"))
      expectEnvelope(nowhere, 404, "ROUTE_NOT_FOUND")
    }))

  it("is answered 400 if the target contains control characters", () =>
    serving(async ({ url }) => {
      for (const target of ["/a\u0001b", "/a\u007fb"]) {
        const raw = await exchange(url, lines(`BREW ${target} HTTP/1.1`, "Host: a"))
        expectEnvelope(raw, 400, "MALFORMED_REQUEST")
      }
      const visible = Buffer.from(lines("BREW /a\u00a0b HTTP/1.1", "Host: a"), "latin1")
      expectEnvelope(await exchange(url, visible), 404, "ROUTE_NOT_FOUND")
    }))

  it("is answered in an envelope if it is CONNECT", () =>
    serving(async ({ url }) => {
      const raw = await exchange(url, lines("CONNECT example.com:443 HTTP/1.1", "Host: a"))
      expectEnvelope(raw, 404, "ROUTE_NOT_FOUND")
    }))
})

describe("a target", () => {
  it("may be in absolute form", () =>
    serving(async ({ token, url }) => {
      const raw = await exchange(
        url,
        lines(
          `GET http://elsewhere${webhooks}?a=b HTTP/1.1`,
          "Host: elsewhere",
          `Authorization: Bearer ${token}`,
          "Connection: close",
        ),
      )
      expect(parseResponses(raw)[0]?.body).toMatchObject({ code: 200, path: webhooks })
    }))

  it("may come with a request to upgrade, which is ignored", () =>
    serving(async ({ token, url }) => {
      const raw = await exchange(
        url,
        lines(
          `GET ${webhooks} HTTP/1.1`,
          "Host: a",
          `Authorization: Bearer ${token}`,
          "Connection: Upgrade, close",
          "Upgrade: websocket",
        ),
      )
      expect(parseResponses(raw)[0]?.status).toBe(200)
    }))
})

describe("a slow client", () => {
  const options = { headersTimeout: 100, requestTimeout: 200 }

  it("is answered 408 if its header does not arrive in time", () =>
    serving(async ({ url }) => {
      expectEnvelope(await exchange(url, "GET / HTTP/1.1\r\nHost: a\r\n"), 408, "REQUEST_TIMEOUT")
    }, options))

  it("is answered 408 if its body does not arrive in time", () =>
    serving(async ({ tenure, token, url }) => {
      const head = lines(
        `PATCH ${extendOne} HTTP/1.1`,
        "Host: a",
        `Authorization: Bearer ${token}`,
        "Content-Type: application/json",
        `Content-Length: ${body.length}`,
      )
      const raw = await exchange(url, head, body.slice(0, 5))
      expectEnvelope(raw, 408, "REQUEST_TIMEOUT")
      expect(parseResponses(raw)[0]?.body).toMatchObject({ method: "PATCH", path: extendOne })
      const found = await tenure.memberships.find({ projectId: "p1", userId: "1001" })
      expect(found.endDate).toBe(1_000_000_000_000)
    }, options))

  it("does not hold up others", () =>
    serving(async ({ token, url }) => {
      const slow = Array.from({ length: 100 }, () => exchange(url, "GET / HTTP/1.1\r\n"))
      const headers = { authorization: `Bearer ${token}` }
      expect((await send(url, { path: webhooks, headers })).status).toBe(200)
      await Promise.all(slow)
    }, options))
})

describe("serve", () => {
  it("fails if the port is in use", async () => {
    const tenure = answering(async () => ok)
    const server = await serve(tenure)
    const port = Number(new URL(server.url).port)
    await expect(serve(tenure, { port })).rejects.toMatchObject({
      message: `The server cannot listen on 127.0.0.1:${port}: another program listens there. Stop it, or pass another port; 0 takes a free one (EADDRINUSE).`,
      code: "EADDRINUSE",
      stack: expect.stringMatching(/^[^\n]*\n +at .*server\.test\.ts/),
    })
    await server.close()
  })

  it("returns a URL with the IPv6 address in brackets", async () => {
    const tenure = answering(async () => ok)
    const server = await serve(tenure, { host: "::1" })
    expect(server.url).toMatch(/^http:\/\/\[::1\]:[0-9]+$/)
    await server.close()
  })

  it("passes requests to the listener, if there is one", () =>
    serving(
      async ({ url }) => {
        const response = await send(url, { path: "/mine" })
        expect([response.status, response.body]).toEqual([200, { mine: true }])
      },
      { listener: (_request, response) => void response.end('{"mine":true}') },
    ))
})

describe("middleware", () => {
  it("answers paths of the API, and calls next for all others", async () => {
    const tenure = await createTenure({ stores: memory() })
    const handler = toNodeHandler(tenure)
    const host = Http.createServer((request, response) =>
      handler(request, response, () => response.writeHead(299).end("{}")),
    )
    await new Promise<void>((resolve) => host.listen(0, "127.0.0.1", resolve))
    const address = host.address()
    const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`
    expect((await send(url, { path: webhooks })).status).toBe(401)
    expect((await send(url, { method: "PUT", path: `${extendOne}?x` })).status).toBe(401)
    for (const path of ["/", "/v2", "/v2/projects/p1/users", "/v2/users", "/other?/v2/projects/"]) {
      expect((await send(url, { path })).status).toBe(299)
    }
    host.close()
    await tenure.close()
  })
})
