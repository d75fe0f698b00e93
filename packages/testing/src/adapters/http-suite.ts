/** Invalid requests, whose responses are envelopes with a 4xx status, and connections: kept alive, pipelined, concurrent, broken. */

import * as Http from "node:http"
import * as Net from "node:net"
import { text } from "node:stream/consumers"
import { describe, expect } from "vitest"
import {
  exchange,
  expectFailure,
  expectHeaders,
  expectNoDate,
  parseResponses,
} from "../support/http.ts"
import {
  type Fixture,
  type ServerTest,
  endDatesOf,
  extend,
  extendAll,
  extendOne,
  unknownId,
  webhooks,
} from "./harness.ts"

const valid = JSON.stringify({ extend })

/** Bodies without a JSON object, as hosts and their parsers see them. The core tests all kinds. */
const noObjects: ReadonlyArray<string | Uint8Array> = [
  "",
  " ",
  "{",
  "{'extend':1}",
  "extend=1",
  "undefined",
  '{"extend":1}{"extend":1}',
  `${valid}\u0000`,
  "null",
  "7",
  '"text"',
  `[${valid}]`,
  new Uint8Array([0xff, 0xfe, 0x7b, 0x7d]),
  Buffer.from(valid, "utf16le"),
  Buffer.from('{"extend":"\ud800"}', "latin1"),
]

/** Header fields for a valid body, and how it is answered. */
const typed: ReadonlyArray<readonly [field: string, value: string, status: 200 | 415]> = [
  ["content-type", "application/json; charset=utf-8", 200],
  ["content-type", "application/json;charset=UTF-8", 200],
  ["content-type", 'Application/JSON ; charset="utf-8"', 200],
  ["content-type", "", 415],
  ["content-type", "text/plain", 415],
  ["content-type", "text/json", 415],
  ["content-type", "application/x-www-form-urlencoded", 415],
  ["content-type", "application/jsonp", 415],
  ["content-type", "application/merge-patch+json", 415],
  ["content-type", "application", 415],
  ["content-type", "multipart/form-data; boundary=x", 415],
  ["content-encoding", "identity", 200],
  ["content-encoding", "gzip", 415],
  ["content-encoding", "br", 415],
  ["content-encoding", "deflate", 415],
  ["content-encoding", "identity, gzip", 415],
  ["content-encoding", "x", 415],
]

const bodyTests = (test: ServerTest): void => {
  test("is refused if it is not a JSON object", async ({ call }) => {
    for (const body of noObjects) {
      expectFailure(await call("PATCH", extendOne, { body }), 400, "MALFORMED_REQUEST")
    }
  })

  test("is refused if it is deeply nested", async ({ call }) => {
    const depth = 30_000
    for (const body of [
      "[".repeat(depth),
      `{"extend":${"[".repeat(depth)}${"]".repeat(depth)}}`,
      `${'{"extend":'.repeat(5000)}1${"}".repeat(5000)}`,
    ]) {
      const response = await call("PATCH", extendOne, { body })
      expect([400, 422]).toContain(response.status)
      expectHeaders(response)
    }
  })

  test("cannot set fields through a prototype", async ({ call }) => {
    for (const body of [
      `{"__proto__":${valid}}`,
      `{"constructor":{"prototype":${valid}}}`,
      '{"toString":1,"hasOwnProperty":2}',
    ]) {
      expectNoDate(await call("PATCH", extendOne, { body }))
    }
    const body = '{"__proto__":{"url":"https://receiver.example/"}}'
    expectFailure(await call("POST", webhooks, { body }), 422, "VALIDATION_ERROR")
  })

  test("is accepted up to 64 KiB, and refused if it is longer, with a Content-Length or chunked", async (fixture) => {
    const { call } = fixture
    const chunked = { "transfer-encoding": "chunked" }
    for (const [headers, length, status] of [
      [{}, 65_536, 200],
      [{}, 65_537, 413],
      [{}, 10_000_000, 413],
      [chunked, 65_536, 200],
      // A parser that has read a few bytes more does not tell how many they were.
      [chunked, 1_048_576, 413],
      [chunked, 10_000_000, 413],
    ] as const) {
      const response = await call("PATCH", extendOne, { body: valid.padEnd(length), headers })
      if (status === 413) expectFailure(response, status, "PAYLOAD_TOO_LARGE")
      expect(response.status).toBe(status)
    }
  })

  test("is read only as JSON without a content encoding, with or without a charset", async (fixture) => {
    const { call } = fixture
    for (const [field, value, status] of typed) {
      const response = await call("PATCH", extendOne, { body: valid, headers: { [field]: value } })
      if (status === 415) expectFailure(response, status, "UNSUPPORTED_MEDIA_TYPE")
      expect([field, value, response.status]).toEqual([field, value, status])
    }
  })

  test("is refused if it has a transfer coding other than chunks", async ({ token, url }) => {
    const raw = await exchange(
      url,
      [
        `PATCH ${extendOne} HTTP/1.1`,
        "Host: localhost",
        `Authorization: Bearer ${token}`,
        "Content-Type: application/json",
        "Transfer-Encoding: gzip, chunked",
        "Connection: close",
        "",
        `${valid.length.toString(16)}\r\n${valid}\r\n0\r\n\r\n`,
      ].join("\r\n"),
    )
    const [response = expect.fail("there is no response")] = parseResponses(raw)
    const sent = { method: "PATCH", path: extendOne }
    expectFailure({ ...response, ...sent }, 400, "MALFORMED_REQUEST")
  })

  test("is ignored if the endpoint expects none", async ({ call }) => {
    const headers = { "content-length": "1" }
    expect((await call("GET", webhooks, { body: "{", headers })).status).toBe(200)
  })
}

export const malformedSuite = (test: ServerTest): void => {
  describe("a body", () => {
    bodyTests(test)

    test("is refused if it is not UTF-8", async ({ call }) => {
      const body = new Uint8Array([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d])
      expectFailure(await call("PATCH", extendOne, { body }), 400, "MALFORMED_REQUEST")
    })
  })

  describe("a path", () => {
    test("is refused if its percent-encoding is invalid, and not found with unusual ids", async (fixture) => {
      const { call } = fixture
      for (const id of ["%", "%z", "%zz", "%c3", "%ff", "%c3%28", "%ed%a0%80", "%u0041"]) {
        for (const [method, path, body] of [
          ["PATCH", `/v2/projects/${id}/memberships/extend`, valid],
          ["PATCH", `/v2/projects/p1/memberships/${id}/extend`, valid],
          ["DELETE", `${webhooks}/${id}`],
        ] as const) {
          expectFailure(await call(method, path, { body }), 400, "MALFORMED_REQUEST")
        }
      }
      for (const id of ["%00", "%2e%2e%2e", "%2F", "%0d%0a", "x".repeat(4000), "%F0%9F%92%A9"]) {
        const path = `/v2/projects/${id}/memberships/1001/extend`
        expectFailure(await call("PATCH", path, { body: valid }), 404, "PROJECT_NOT_FOUND")
      }
    })
  })

  describe("a method", () => {
    test("that a path does not allow is answered with 405 and the allowed methods", async (fixture) => {
      const { call } = fixture
      const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "PURGE"]
      for (const [path, allow] of [
        [extendOne, "PATCH"],
        [extendAll, "PATCH"],
        [webhooks, "GET, POST"],
        [`${webhooks}/${unknownId}`, "GET, PATCH, DELETE"],
      ] as const) {
        for (const method of methods.filter((one) => !allow.split(", ").includes(one))) {
          const response = await call(method, path)
          expectFailure(response, 405, "METHOD_NOT_ALLOWED")
          expect(response.headers["allow"]).toBe(allow)
        }
        const head = await call("HEAD", path)
        expectHeaders(head)
        expect([head.status, head.headers["allow"], head.text]).toEqual([405, allow, ""])
      }
    })
  })
}

/**
 * Declares the tests for a server with a parser before the API. Parsers replace invalid UTF-8, so the
 * API cannot detect it.
 */
export const parsedSuite = (test: ServerTest): void => {
  describe("a body that the host's parser has read or refused", () => {
    bodyTests(test)
  })
}

const extension = JSON.stringify({ extend })

const head = ({ token }: Fixture, ...lines: ReadonlyArray<string>): string =>
  [...lines, "Host: localhost", `Authorization: Bearer ${token}`, "", ""].join("\r\n")

/** An extension's head. */
const headOf = (
  fixture: Fixture,
  framing: string = `Content-Length: ${extension.length}`,
): string => head(fixture, `PATCH ${extendOne} HTTP/1.1`, "Content-Type: application/json", framing)

/** Sends a request through an agent, and returns the response's code. */
const over = (agent: Http.Agent, { token, url }: Fixture): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
    Http.request(new URL(extendOne, url), { agent, method: "PATCH", headers }, (response) => {
      text(response).then((content) => resolve(JSON.parse(content).code), reject)
    })
      .on("error", reject)
      .end(extension)
  })

const connect = ({ url }: Fixture): Net.Socket => {
  const { hostname, port } = new URL(url)
  return Net.connect(Number(port), hostname).on("error", () => {})
}

/** Opens a connection, writes, and destroys it once everything is sent. */
const breakOff = (fixture: Fixture, sent: string): Promise<void> =>
  new Promise((resolve) => {
    const socket = connect(fixture).on("close", () => resolve())
    socket.write(sent, () => socket.destroy())
  })

/** Opens a connection with many requests at once. `responses` counts the answered ones. */
const flood = (
  fixture: Fixture,
  requests: number,
): Promise<{ readonly responses: () => number; readonly end: () => void }> =>
  new Promise((resolve) => {
    let responses = 0
    const socket = connect(fixture)
    socket.on("data", (data) => {
      responses += data.toString("latin1").split("HTTP/1.1 401").length - 1
    })
    socket.on("connect", () => {
      socket.write(`GET ${webhooks} HTTP/1.1\r\nHost: localhost\r\n\r\n`.repeat(requests))
      resolve({ responses: () => responses, end: () => socket.destroy() })
    })
  })

export const connectionsSuite = (test: ServerTest): void => {
  describe("connections", () => {
    test("are kept alive", async (fixture) => {
      const agent = new Http.Agent({ keepAlive: true, maxSockets: 1 })
      const connections = new Set<unknown>()
      agent.on("free", (socket) => connections.add(socket))
      for (let count = 0; count < 20; count++) expect(await over(agent, fixture)).toBe(200)
      expect(connections.size).toBe(1)
      agent.destroy()
    })

    test("carry hundreds of concurrent requests", async (fixture) => {
      const agent = new Http.Agent({ keepAlive: true, maxSockets: 100 })
      const codes = await Promise.all(Array.from({ length: 300 }, () => over(agent, fixture)))
      expect(new Set(codes)).toEqual(new Set([200]))
      agent.destroy()
    })

    test("answer pipelined requests in order", async (fixture) => {
      const raw = await exchange(
        fixture.url,
        headOf(fixture) +
          extension +
          head(fixture, `GET ${webhooks} HTTP/1.1`) +
          head(fixture, `PUT ${webhooks} HTTP/1.1`, "Connection: close"),
      )
      const headers = { "cache-control": "no-store" }
      expect(parseResponses(raw)).toMatchObject(
        [200, 200, 405].map((status) => ({ status, headers })),
      )
    })

    test("with thousands of pipelined requests leave other clients their turn", async (fixture) => {
      const requests = 10_000
      const floods = await Promise.all([flood(fixture, requests), flood(fixture, requests)])
      expect((await fixture.call("GET", webhooks)).status).toBe(200)
      for (const { end, responses } of floods) {
        expect(responses()).toBeLessThan(requests / 10)
        end()
      }
    })

    test("that break in the middle of a request change nothing", async (fixture) => {
      const before = await endDatesOf(fixture)
      const start = headOf(fixture)
      const chunked = headOf(fixture, "Transfer-Encoding: chunked")
      for (const sent of [
        start.slice(0, 30),
        start,
        start + extension.slice(0, 10),
        `${chunked}5\r\n{"ext`,
      ]) {
        await breakOff(fixture, sent)
      }
      expect(await endDatesOf(fixture)).toEqual(before)
      expect((await fixture.call("GET", webhooks)).status).toBe(200)
    })

    test("that break before the response do not affect later requests", async (fixture) => {
      const request = headOf(fixture) + extension
      await Promise.all(Array.from({ length: 50 }, () => breakOff(fixture, request)))
      expect((await fixture.call("GET", webhooks)).status).toBe(200)
    })
  })
}
