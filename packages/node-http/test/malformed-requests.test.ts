/** Requests that are not valid HTTP, have unknown methods, or wait for 100 Continue. */

import { once } from "node:events"
import { maxHeaderSize } from "node:http"
import { text } from "node:stream/consumers"
import { setImmediate } from "node:timers/promises"
import { exchange, parseResponses, send } from "@tenure/testing/conformance"
import { describe, expect, it } from "vitest"
import { readMalformedHead } from "../src/malformed-requests.ts"
import {
  authorized,
  body,
  connect,
  expectEnvelope,
  extendOne,
  json,
  lines,
  serving,
  webhooks,
} from "./support.ts"

/** The faults' status and code that the tests below provoke. */
const faultOf = (status: number | undefined): [number, string] =>
  status === 431 ? [431, "REQUEST_HEADERS_TOO_LARGE"] : [400, "MALFORMED_REQUEST"]

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
        expect(failed?.body).toEqual({ ...Object(alone?.body), request_id: expect.any(String) })
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
      const more = ["Content-Type: text/plain", "Connection: close"]
      const request = authorized(`PATCH ${extendOne}`, token, ...json, ...more)
      expect(parseResponses(await exchange(url, request, body))[0]?.status).toBe(415)
    }))

  it("is answered after the request before it on the connection, which runs once", () =>
    serving(async ({ tenure, token, url }) => {
      const request = authorized(`PATCH ${extendOne}`, token, ...json)
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
  it.each([
    ["alone", "", []],
    ["behind other requests", lines("GET / HTTP/1.1", "Host: a"), [{ status: 404 }]],
  ])(
    "is answered 405 %s, like any other method that the path does not allow",
    (_name, earlier, answers) =>
      serving(async ({ token, url }) => {
        for (const method of ["BREW", "constructor", "__proto__", "get"]) {
          const raw = await exchange(url, earlier + authorized(`${method} ${webhooks}?x`, token))
          expect(parseResponses(raw)).toMatchObject([
            ...answers,
            {
              status: 405,
              headers: { allow: "GET, POST" },
              body: { method, path: webhooks, code: 405 },
            },
          ])
        }
      }),
  )

  it("is answered 431 if the header is too long", () =>
    serving(async ({ url }) => {
      const packet = lines("BREW / HTTP/1.1", ...Array.from({ length: 15_000 }, () => "x:"))
      const raw = await exchange(url, packet)
      expectEnvelope(raw, 431, "REQUEST_HEADERS_TOO_LARGE")
      expect(parseResponses(raw)[0]?.body).toMatchObject({ method: "BREW", path: "/" })
    }))

  it.each([
    ["without a key", `BREW ${webhooks}`, 401, "UNAUTHORIZED"],
    ["outside the API", "BREW /pot", 404, "ROUTE_NOT_FOUND"],
    ["with a visible character beyond ASCII", "BREW /a\u00a0b", 404, "ROUTE_NOT_FOUND"],
    ["with a control character", "BREW /a\u0001b", 400, "MALFORMED_REQUEST"],
    ["with another control character", "BREW /a\u007fb", 400, "MALFORMED_REQUEST"],
    ["of CONNECT", "CONNECT example.com:443", 404, "ROUTE_NOT_FOUND"],
  ])("is answered in an envelope %s: %s", (_name, line, status, code) =>
    serving(async ({ url }) => {
      const packet = Buffer.from(lines(`${line} HTTP/1.1`, "Host: a"), "latin1")
      expectEnvelope(await exchange(url, packet), status, code)
    }),
  )
})

const rejected = (head: string) => ({ packet: Buffer.from(head), parsed: 1 })

/** How long it takes to read a head with so many fields, in milliseconds: the best time. */
const millis = (fields: number): number => {
  const head = rejected(lines("BREW / HTTP/1.1", ...Array.from({ length: fields }, () => "x:")))
  const times = Array.from({ length: 30 }, () => {
    const start = performance.now()
    expect(readMalformedHead(head)?._tag).toBe("Head")
    return performance.now() - start
  })
  return Math.min(...times)
}

it("the time to read a head grows with its length and not with the square of it", () => {
  millis(400)
  // A tenth as many fields: if the time grew with the length squared, this would take a hundredth.
  expect(millis(4000)).toBeLessThan(50 * millis(400) + 1)
})

it("a head has all values of a repeated field, and any name", () => {
  const head = rejected(lines("BREW /x HTTP/1.1", "A: 1", "a:2 ", "__proto__: 3"))
  expect(readMalformedHead(head)).toMatchObject({
    _tag: "Head",
    method: "BREW",
    target: "/x",
    headers: { a: ["1", "2"], ["__proto__"]: ["3"] },
  })
})

it("a head is read up to the length that Node allows", () => {
  const head = (length: number) => rejected(lines("BREW / HTTP/1.1", "x:".padEnd(length)))
  expect(readMalformedHead(head(maxHeaderSize - 17))?._tag).toBe("Head")
  expect(readMalformedHead(head(maxHeaderSize + 1))?._tag).toBe("TooLong")
})

const continued = "HTTP/1.1 100 Continue\r\n\r\n"

/** A request's head whose client waits for 100 Continue. */
const waiting = (
  path: string,
  token: string,
  length: number,
  ...more: ReadonlyArray<string>
): string =>
  lines(
    `${path.endsWith("/import") ? "POST" : "PATCH"} ${path} HTTP/1.1`,
    "Host: localhost",
    `Authorization: Bearer ${token}`,
    "Expect: 100-continue",
    `Content-Type: application/${path.endsWith("/import") ? "x-ndjson" : "json"}`,
    `Content-Length: ${length}`,
    ...more,
  )

describe("a client that waits for 100 Continue", () => {
  it("gets it if its body is needed", () =>
    serving(async ({ token, url }) => {
      const socket = await connect(url)
      for (const more of ["X: y", "Connection: close"]) {
        socket.write(waiting(extendOne, token, body.length, more))
        const [first] = await once(socket, "data")
        expect(String(first)).toBe(continued)
        socket.write(body)
        if (more === "X: y") await once(socket, "data")
      }
      expect(parseResponses(await text(socket))[0]?.status).toBe(200)
    }))

  it.each([
    [401, "without a valid key", extendOne, "unknown", 100],
    [404, "on an unknown path", "/v2/nothing", undefined, 100],
    [404, "on a foreign project", extendOne.replace("p1", "p9"), undefined, 100],
    [405, "with a method that the path does not allow", webhooks, undefined, 100],
    [413, "with a body that is too large", extendOne, undefined, 1_000_000],
  ])("gets %i at once %s, and the connection ends", (status, _name, path, given, length) =>
    serving(async ({ token, url }) => {
      const raw = await exchange(url, waiting(path, given ?? token, length))
      expect(raw).not.toContain("100 Continue")
      // The server cannot tell the next request from a body that the client may send or omit.
      expect(parseResponses(raw)).toMatchObject([{ status, headers: { connection: "close" } }])
    }),
  )

  it("gets it for an import, whose lines may come one by one", () =>
    serving(async ({ tenure, url }) => {
      const { token } = await tenure.apiKeys.issue({ projects: ["p1"], role: "operator" })
      const rows = Array.from({ length: 200 }, (_, index) =>
        JSON.stringify({ user_id: String(5001 + index), end_date: "2099-01-01T00:00:00.000Z" }),
      )
      const socket = await connect(url)
      const path = "/v2/projects/p1/memberships/import"
      socket.write(waiting(path, token, rows.join("\n").length + 1, "Connection: close"))
      const [first] = await once(socket, "data")
      expect(String(first)).toBe(continued)
      for (const row of rows) {
        socket.write(`${row}\n`)
        await setImmediate()
      }
      expect(parseResponses(await text(socket))).toMatchObject([{ status: 200 }])
      const found = await tenure.memberships.find({ projectId: "p1", userId: "5200" })
      expect(found.state).toBe("active")
    }))

  it("gets 429 at once if it is over its limits", () =>
    serving(async ({ url }) => {
      const responses = await Promise.all(
        Array.from({ length: 600 }, () => exchange(url, waiting(extendOne, "unknown", 100))),
      )
      // And none is 100.
      const statuses = new Set(responses.map((one) => one.slice(9, 12)))
      expect(statuses).toEqual(new Set(["401", "429"]))
    }))

  it("changes nothing if it sends only half of its body", () =>
    serving(async ({ tenure, token, url }) => {
      const before = await tenure.memberships.history({ projectId: "p1" })
      const socket = await connect(url)
      socket.write(waiting(extendOne, token, body.length))
      await once(socket, "data")
      socket.write(body.slice(0, 5))
      socket.resetAndDestroy()
      // The server has read the half and the reset by the time it answers this request.
      await send(url, { path: "/" })
      expect(await tenure.memberships.history({ projectId: "p1" })).toEqual(before)
    }))

  it("gets it at once from a listener that reads the body itself", () =>
    serving(
      async ({ url }) => {
        const socket = await connect(url)
        socket.write(waiting("/own", "none", 2, "Connection: close"))
        const [first] = await once(socket, "data")
        expect(String(first)).toContain("HTTP/1.1 100 Continue")
        socket.write("{}")
        expect(parseResponses(await text(socket))).toMatchObject([{ status: 200, text: "{}" }])
      },
      {
        listener: (request, response) => void request.pipe(response.setHeader("Content-Length", 2)),
      },
    ))
})
