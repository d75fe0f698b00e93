/** Connections: kept alive, pipelined, concurrent, broken. */

import * as Http from "node:http"
import * as Net from "node:net"
import { text } from "node:stream/consumers"
import { describe, expect } from "vitest"
import { exchange, parseResponses } from "../support/http.ts"
import {
  type Fixture,
  type ServerTest,
  endDatesOf,
  extend,
  extendOne,
  webhooks,
} from "./harness.ts"

const body = JSON.stringify({ extend })

const head = ({ token }: Fixture, ...lines: ReadonlyArray<string>): string =>
  [...lines, "Host: localhost", `Authorization: Bearer ${token}`, "", ""].join("\r\n")

/** The head of an extension. */
const headOf = (fixture: Fixture, framing: string = `Content-Length: ${body.length}`): string =>
  head(fixture, `PATCH ${extendOne} HTTP/1.1`, "Content-Type: application/json", framing)

/** Sends a request through an agent, and returns the response's code. */
const over = (agent: Http.Agent, { token, url }: Fixture): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
    Http.request(new URL(extendOne, url), { agent, method: "PATCH", headers }, (response) => {
      text(response).then((content) => resolve(JSON.parse(content).code), reject)
    })
      .on("error", reject)
      .end(body)
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
          body +
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
        start + body.slice(0, 10),
        `${chunked}5\r\n{"ext`,
      ]) {
        await breakOff(fixture, sent)
      }
      expect(await endDatesOf(fixture)).toEqual(before)
      expect((await fixture.call("GET", webhooks)).status).toBe(200)
    })

    test("that break before the response do not affect later requests", async (fixture) => {
      const request = headOf(fixture) + body
      await Promise.all(Array.from({ length: 50 }, () => breakOff(fixture, request)))
      expect((await fixture.call("GET", webhooks)).status).toBe(200)
    })
  })
}
