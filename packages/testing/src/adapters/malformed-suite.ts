/** Invalid requests: every response is an envelope with a 4xx status. */

import { describe, expect } from "vitest"
import { exchange, expectFailure, expectHeaders, parseResponses } from "../support/http.ts"
import { type ServerTest, webhooks, extendOne } from "./harness.ts"

const valid = JSON.stringify({ extend: "2099-01-01T00:00:00.000Z" })

/** API paths with their allowed methods. */
const paths: ReadonlyArray<readonly [path: string, allow: string]> = [
  [extendOne, "PATCH"],
  ["/v2/projects/p1/memberships/extend", "PATCH"],
  [webhooks, "GET, POST"],
  [`${webhooks}/6ba7b810-9dad-41d1-80b4-00c04fd430c8`, "GET, PATCH, DELETE"],
]

const bodyTests = (test: ServerTest): void => {
  test("is refused if it is not a JSON object", async ({ call }) => {
    const bodies = [
      "",
      " ",
      "{",
      "}",
      '{"extend":}',
      "{'extend':1}",
      "extend=1",
      "undefined",
      "NaN",
      '{"extend":1}{"extend":1}',
      `${valid}\u0000`,
      "null",
      "true",
      "7",
      '"text"',
      "[]",
      `[${valid}]`,
      new Uint8Array([0xff, 0xfe, 0x7b, 0x7d]),
      Buffer.from(valid, "utf16le"),
      Buffer.from('{"extend":"\ud800"}', "latin1"),
    ]
    for (const body of bodies) {
      expectFailure(await call("PATCH", extendOne, { body }), 400, "MALFORMED_REQUEST")
    }
  })

  test("is refused if it is deeply nested", async ({ call }) => {
    const depth = 30_000
    const bodies = [
      "[".repeat(depth),
      "[".repeat(depth) + "]".repeat(depth),
      `{"extend":${"[".repeat(depth)}${"]".repeat(depth)}}`,
      `${'{"extend":'.repeat(5000)}1${"}".repeat(5000)}`,
    ]
    for (const body of bodies) {
      const response = await call("PATCH", extendOne, { body })
      expect([400, 422]).toContain(response.status)
      expectHeaders(response)
    }
  })

  test("cannot set fields through a prototype", async ({ call }) => {
    const bodies = [
      `{"__proto__":${valid}}`,
      `{"constructor":{"prototype":${valid}}}`,
      '{"toString":1,"hasOwnProperty":2}',
    ]
    for (const body of bodies) {
      const response = await call("PATCH", extendOne, { body })
      expectFailure(response, 422, ["VALIDATION_ERROR", "VALIDATION_ERROR"])
    }
    const created = await call("POST", webhooks, {
      body: '{"__proto__":{"url":"https://receiver.example/"}}',
    })
    expectFailure(created, 422, "VALIDATION_ERROR")
  })

  test("is accepted up to 64 KiB, and refused if it is a byte longer", async ({ call }) => {
    const padded = (length: number) => valid.padEnd(length, " ")
    expect((await call("PATCH", extendOne, { body: padded(65_536) })).status).toBe(200)
    const response = await call("PATCH", extendOne, { body: padded(65_537) })
    expectFailure(response, 413, "PAYLOAD_TOO_LARGE")
  })

  test("of 1 MiB or 10 MB is refused, with a Content-Length or chunked", async ({ call }) => {
    for (const length of [1_048_576, 10_000_000]) {
      for (const headers of [{}, { "transfer-encoding": "chunked" }]) {
        const response = await call("PATCH", extendOne, { body: "x".repeat(length), headers })
        expectFailure(response, 413, "PAYLOAD_TOO_LARGE")
      }
    }
  })

  test("is read as JSON with or without a charset, in upper and lower case", async ({ call }) => {
    const types = [
      "application/json",
      "application/json; charset=utf-8",
      "application/json;charset=UTF-8",
      'Application/JSON ; charset="utf-8"',
    ]
    for (const type of types) {
      const headers = { "content-type": type }
      expect((await call("PATCH", extendOne, { body: valid, headers })).status).toBe(200)
    }
  })

  test("is refused if its type is missing or not JSON", async ({ call }) => {
    const types = [
      "",
      "text/plain",
      "text/json",
      "application/x-www-form-urlencoded",
      "application/jsonp",
      "application/json-patch+json",
      "application/merge-patch+json",
      "application",
      "multipart/form-data; boundary=x",
    ]
    for (const type of types) {
      const headers = { "content-type": type }
      const response = await call("PATCH", extendOne, { body: valid, headers })
      expectFailure(response, 415, "UNSUPPORTED_MEDIA_TYPE")
    }
  })

  test("is refused if it has a content encoding", async ({ call }) => {
    for (const encoding of ["gzip", "br", "deflate", "identity, gzip", "x"]) {
      const headers = { "content-encoding": encoding }
      const response = await call("PATCH", extendOne, { body: valid, headers })
      expectFailure(response, 415, "UNSUPPORTED_MEDIA_TYPE")
    }
    const headers = { "content-encoding": "identity" }
    expect((await call("PATCH", extendOne, { body: valid, headers })).status).toBe(200)
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
    const [response] = parseResponses(raw)
    if (response === undefined) throw new Error("no response")
    const sent = { method: "PATCH", path: extendOne }
    expectFailure({ ...response, ...sent }, 400, "MALFORMED_REQUEST")
  })

  test("is ignored if the endpoint expects none", async ({ call }) => {
    const headers = { "content-length": "1" }
    expect((await call("GET", webhooks, { body: "{", headers })).status).toBe(200)
  })
}

/** Declares the tests. */
export const malformedSuite = (test: ServerTest): void => {
  describe("a body", () => {
    bodyTests(test)

    test("is refused if it is not UTF-8", async ({ call }) => {
      const body = new Uint8Array([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d])
      expectFailure(await call("PATCH", extendOne, { body }), 400, "MALFORMED_REQUEST")
    })
  })

  describe("a path", () => {
    test("is refused if its percent-encoding is invalid", async ({ call }) => {
      for (const id of ["%", "%z", "%zz", "%c3", "%ff", "%c3%28", "%ed%a0%80", "%u0041"]) {
        for (const path of [
          `/v2/projects/${id}/memberships/extend`,
          `/v2/projects/p1/memberships/${id}/extend`,
        ]) {
          expectFailure(await call("PATCH", path, { body: valid }), 400, "MALFORMED_REQUEST")
        }
        const path = `${webhooks}/${id}`
        expectFailure(await call("DELETE", path), 400, "MALFORMED_REQUEST")
      }
    })

    test("with unusual ids is not found", async ({ call }) => {
      const ids = ["%00", "%2e%2e%2e", "%2F", "%0d%0a", "x".repeat(4000), "%F0%9F%92%A9", "'--"]
      for (const id of ids) {
        const path = `/v2/projects/${id}/memberships/1001/extend`
        expectFailure(await call("PATCH", path, { body: valid }), 404, "PROJECT_NOT_FOUND")
      }
    })
  })

  describe("a method", () => {
    test("that a path does not allow is answered with 405 and the allowed methods", async ({
      call,
    }) => {
      const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "PURGE"]
      for (const [path, allow] of paths) {
        for (const method of methods.filter((one) => !allow.split(", ").includes(one))) {
          const response = await call(method, path)
          expectFailure(response, 405, "METHOD_NOT_ALLOWED")
          expect(response.headers["allow"]).toBe(allow)
        }
      }
    })

    test("of HEAD is answered with 405 and no body", async ({ call }) => {
      for (const [path, allow] of paths) {
        const response = await call("HEAD", path)
        expectHeaders(response)
        expect([response.status, response.headers["allow"]]).toEqual([405, allow])
        expect(response.text).toBe("")
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
