import * as Http from "node:http"
import * as Tenure from "@tenure/core/Tenure"
import { memory } from "@tenure/memory"
import { serve, toNodeHandler } from "@tenure/node-http"
import { exchange, parseResponses, send } from "@tenure/testing"
import { describe, expect, it } from "vitest"
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

describe("what is no HTTP request", () => {
  it.each([
    ["nonsense", lines("nonsense")],
    ["a control character in a header", lines("GET / HTTP/1.1", "Host: a", "X\u0001: b")],
    ["a header without a colon", lines("GET / HTTP/1.1", "Host: a", "nothing")],
    ["another version", lines("GET / HTTP/9.9", "Host: a")],
    ["a length that is none", lines(`PATCH ${extendOne} HTTP/1.1`, "Host: a", "Content-Length: x")],
    ["two lengths", lines("GET / HTTP/1.1", "Host: a", "Content-Length: 1", "Content-Length: 2")],
    [
      "a length and chunks, as smugglers send them",
      lines("GET / HTTP/1.1", "Host: a", "Content-Length: 5", "Transfer-Encoding: chunked"),
    ],
    ["TLS", Buffer.from("16030100c8010000c40303", "hex")],
    ["no host", lines("GET / HTTP/1.1", "Connection: close")],
    ["two hosts", lines("GET / HTTP/1.1", "Host: a", "Host: b", "Connection: close")],
    [
      "a transfer coding that is not known",
      lines("GET / HTTP/1.1", "Host: a", "Transfer-Encoding: gzip, chunked", "Connection: close"),
    ],
  ])("is answered 400 in an envelope: %s", (_name, packet) =>
    serving(async ({ url }) => {
      expectEnvelope(await exchange(url, packet), 400, "MALFORMED_REQUEST")
      expect((await send(url, { path: "/" })).status).toBe(404)
    }),
  )

  it("is answered 431 where the header is too long", () =>
    serving(async ({ url }) => {
      const packet = lines("GET / HTTP/1.1", "Host: a", `X: ${"x".repeat(100_000)}`)
      expectEnvelope(await exchange(url, packet), 431, "REQUEST_HEADERS_TOO_LARGE")
    }))

  it.each([
    ["a header too long", `X: ${"x".repeat(20_000)}`],
    ["two lengths", "Content-Length: 1\r\nContent-Length: 2"],
  ])("is answered with its method and path as far as they can be told: %s", (_name, field) =>
    serving(async ({ url }) => {
      const first = lines(`PATCH ${extendOne}?query HTTP/1.1`, "Host: a", field)
      const [alone] = parseResponses(await exchange(url, first))
      expect(alone?.body).toMatchObject({ method: "PATCH", path: extendOne })
      const before = lines("GET / HTTP/1.1", "Host: a")
      const responses = parseResponses(await exchange(url, before + first))
      expect(responses[0]?.body).toMatchObject({ method: "GET", path: "/" })
      expect(JSON.stringify(responses.slice(1))).not.toContain("GET")
    }),
  )

  it("has two content types", () =>
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

  it("is answered after the request before it on the same connection, which is not repeated", () =>
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

  it("is answered 400 where a body in chunks is broken", () =>
    serving(async ({ url }) => {
      const head = lines(`PATCH ${extendOne} HTTP/1.1`, "Host: a", "Transfer-Encoding: chunked")
      const raw = await exchange(url, `${head}zz\r\n`)
      expectEnvelope(raw, 400, "MALFORMED_REQUEST")
      expect(parseResponses(raw)[0]?.body).toMatchObject({ method: "PATCH", path: extendOne })
    }))
})

describe("a method that node does not know", () => {
  it("is answered like any other that the path does not allow", () =>
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

  it("needs a key too, and finds nothing where there is nothing", () =>
    serving(async ({ url }) => {
      const without = await exchange(url, lines(`BREW ${webhooks} HTTP/1.1`, "Host: a"))
      expectEnvelope(without, 401, "UNAUTHORIZED")
      const nowhere = await exchange(url, lines("BREW /pot HTTP/1.1", "Host: a"))
      expectEnvelope(nowhere, 404, "ROUTE_NOT_FOUND")
    }))

  it("has a target that is visible, or is no request", () =>
    serving(async ({ url }) => {
      for (const target of ["/a\u0001b", "/a\u007fb"]) {
        const raw = await exchange(url, lines(`BREW ${target} HTTP/1.1`, "Host: a"))
        expectEnvelope(raw, 400, "MALFORMED_REQUEST")
      }
      const visible = Buffer.from(lines("BREW /a\u00a0b HTTP/1.1", "Host: a"), "latin1")
      expectEnvelope(await exchange(url, visible), 404, "ROUTE_NOT_FOUND")
    }))

  it("CONNECT is answered in an envelope", () =>
    serving(async ({ url }) => {
      const raw = await exchange(url, lines("CONNECT example.com:443 HTTP/1.1", "Host: a"))
      expectEnvelope(raw, 404, "ROUTE_NOT_FOUND")
    }))
})

describe("targets", () => {
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

  it("may ask for an upgrade, which is not granted", () =>
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

describe("slow clients", () => {
  const options = { headersTimeout: 100, requestTimeout: 200 }

  it("are answered 408 when their header does not arrive in time", () =>
    serving(async ({ url }) => {
      expectEnvelope(await exchange(url, "GET / HTTP/1.1\r\nHost: a\r\n"), 408, "REQUEST_TIMEOUT")
    }, options))

  it("are answered 408 when their body does not arrive in time", () =>
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

  it("do not hold up others", () =>
    serving(async ({ token, url }) => {
      const slow = Array.from({ length: 100 }, () => exchange(url, "GET / HTTP/1.1\r\n"))
      const headers = { authorization: `Bearer ${token}` }
      expect((await send(url, { path: webhooks, headers })).status).toBe(200)
      await Promise.all(slow)
    }, options))
})

describe("serving", () => {
  it("fails where the port is taken", async () => {
    const tenure = answering(async () => ok)
    const server = await serve(tenure)
    const port = Number(new URL(server.url).port)
    await expect(serve(tenure, { port })).rejects.toThrow("EADDRINUSE")
    await server.close()
  })

  it("gives the URL of an IPv6 address in brackets", async () => {
    const tenure = answering(async () => ok)
    const server = await serve(tenure, { host: "::1" })
    expect(server.url).toMatch(/^http:\/\/\[::1\]:[0-9]+$/)
    await server.close()
  })

  it("may leave requests to a listener, which passes them on as it likes", () =>
    serving(
      async ({ url }) => {
        const response = await send(url, { path: "/mine" })
        expect([response.status, response.body]).toEqual([200, { mine: true }])
      },
      { listener: (_request, response) => void response.end('{"mine":true}') },
    ))
})

describe("as a middleware", () => {
  it("answers what is the API's, and passes everything else on", async () => {
    const tenure = await Tenure.make({ stores: memory() })
    const handler = toNodeHandler(tenure)
    const host = Http.createServer((request, response) =>
      handler(request, response, () => response.writeHead(299).end("{}")),
    )
    await new Promise<void>((resolve) => host.listen(0, "127.0.0.1", resolve))
    const address = host.address()
    const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`
    expect((await send(url, { path: webhooks })).status).toBe(401)
    expect((await send(url, { method: "PUT", path: `${extendOne}?x` })).status).toBe(401)
    for (const path of [
      "/",
      "/v2/projects",
      "/v2/projects/p1",
      "/v2/users",
      "/other?/v2/projects/",
    ]) {
      expect((await send(url, { path })).status).toBe(299)
    }
    host.close()
    await tenure.close()
  })
})
