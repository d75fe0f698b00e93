/** Connections: kept alive, pipelined, concurrent, broken. */

import * as Http from "node:http"
import * as Net from "node:net"
import { text } from "node:stream/consumers"
import { describe, expect } from "vitest"
import { exchange, parseResponses } from "../support/http.ts"
import { type Fixture, type ServerTest, webhooks, extendOne } from "./harness.ts"

const extend = "2099-01-01T00:00:00.000Z"
const body = JSON.stringify({ extend })

const head = ({ token }: Fixture, ...lines: ReadonlyArray<string>): string =>
  [...lines, "Host: localhost", `Authorization: Bearer ${token}`, "", ""].join("\r\n")

/** Sends a request through an agent, and returns the response's code. */
const over = (agent: Http.Agent, { token, url }: Fixture): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const request = Http.request(
      {
        agent,
        hostname,
        port,
        path: extendOne,
        method: "PATCH",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      },
      (response) => {
        text(response).then((content) => resolve(JSON.parse(content).code), reject)
      },
    )
    request.on("error", reject)
    request.end(body)
  })

/** Opens a connection, writes, and destroys it once everything is sent. */
const breakOff = ({ url }: Fixture, sent: string): Promise<void> =>
  new Promise((resolve) => {
    const { hostname, port } = new URL(url)
    const socket = Net.connect(Number(port), hostname)
    socket.on("error", () => {}).on("close", () => resolve())
    socket.write(sent, () => socket.destroy())
  })

/** Opens a connection with many requests at once. `responses` counts the answered ones. */
const flood = (
  { url }: Fixture,
  requests: number,
): Promise<{ readonly responses: () => number; readonly end: () => void }> =>
  new Promise((resolve) => {
    const { hostname, port } = new URL(url)
    const socket = Net.connect(Number(port), hostname)
    let responses = 0
    socket.on("error", () => {})
    socket.on("data", (data) => {
      responses += data.toString("latin1").split("HTTP/1.1 401").length - 1
    })
    socket.on("connect", () => {
      socket.write(`GET ${webhooks} HTTP/1.1\r\nHost: localhost\r\n\r\n`.repeat(requests))
      resolve({ responses: () => responses, end: () => socket.destroy() })
    })
  })

/** Declares the tests. */
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
      const patch = [
        `PATCH ${extendOne} HTTP/1.1`,
        "Content-Type: application/json",
        `Content-Length: ${body.length}`,
      ]
      const raw = await exchange(
        fixture.url,
        head(fixture, ...patch) +
          body +
          head(fixture, `GET ${webhooks} HTTP/1.1`) +
          head(fixture, `PUT ${webhooks} HTTP/1.1`, "Connection: close"),
      )
      const responses = parseResponses(raw)
      expect(responses.map(({ status }) => status)).toEqual([200, 200, 405])
      for (const { headers } of responses) expect(headers["cache-control"]).toBe("no-store")
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
      const length = `Content-Length: ${body.length}`
      const type = "Content-Type: application/json"
      const start = head(fixture, `PATCH ${extendOne} HTTP/1.1`, type, length)
      await breakOff(fixture, start.slice(0, 30))
      await breakOff(fixture, start)
      await breakOff(fixture, start + body.slice(0, 10))
      const chunked = "Transfer-Encoding: chunked"
      const chunkedStart = head(fixture, `PATCH ${extendOne} HTTP/1.1`, type, chunked)
      await breakOff(fixture, `${chunkedStart}5\r\n{"ext`)
      const found = await fixture.tenure.memberships.find({ projectId: "p1", userId: "1001" })
      expect(new Date(found.endDate).toISOString()).not.toBe(extend)
      expect((await fixture.call("GET", webhooks)).status).toBe(200)
    })

    test("that break before the response do not affect later requests", async (fixture) => {
      const patch = [
        `PATCH ${extendOne} HTTP/1.1`,
        "Content-Type: application/json",
        `Content-Length: ${body.length}`,
      ]
      const request = head(fixture, ...patch) + body
      await Promise.all(Array.from({ length: 50 }, () => breakOff(fixture, request)))
      expect((await fixture.call("GET", webhooks)).status).toBe(200)
    })
  })
}
