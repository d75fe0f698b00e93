/** Connections: kept alive, pipelined, many at once, broken off. */

import * as Http from "node:http"
import * as Net from "node:net"
import { text } from "node:stream/consumers"
import { describe, expect, it } from "vitest"
import type { Fixture, Serving } from "./AdapterHarness.ts"
import { exchange, parseResponses } from "./httpClient.ts"

const webhooks = "/v2/projects/p1/integrations/webhooks"
const extendOne = "/v2/projects/p1/memberships/1001/extend"
const extend = "2099-01-01T00:00:00.000Z"
const body = JSON.stringify({ extend })

const head = ({ token }: Fixture, ...lines: ReadonlyArray<string>): string =>
  [...lines, "Host: localhost", `Authorization: Bearer ${token}`, "", ""].join("\r\n")

/** Sends a request over an agent that keeps its connection. */
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

/** Opens a connection, writes, and destroys it. */
const breakOff = ({ url }: Fixture, ...chunks: ReadonlyArray<string>): Promise<void> =>
  new Promise((resolve) => {
    const { hostname, port } = new URL(url)
    const socket = Net.connect(Number(port), hostname, () => {
      for (const chunk of chunks) socket.write(chunk)
      setTimeout(() => socket.destroy(), 10)
    })
    socket.on("error", () => {}).on("close", () => resolve())
  })

/** Declares the suite. */
export const connectionsSuite = (serving: Serving): void => {
  describe("connections", () => {
    it(
      "are kept alive",
      serving(async (fixture) => {
        const agent = new Http.Agent({ keepAlive: true, maxSockets: 1 })
        const connections = new Set<unknown>()
        agent.on("free", (socket) => connections.add(socket))
        for (let count = 0; count < 20; count++) expect(await over(agent, fixture)).toBe(200)
        expect(connections.size).toBe(1)
        agent.destroy()
      }),
    )

    it(
      "carry a thousand requests at once",
      serving(async (fixture) => {
        const agent = new Http.Agent({ keepAlive: true, maxSockets: 200 })
        const codes = await Promise.all(Array.from({ length: 1000 }, () => over(agent, fixture)))
        expect(new Set(codes)).toEqual(new Set([200]))
        agent.destroy()
      }),
    )

    it(
      "answer pipelined requests in their order",
      serving(async (fixture) => {
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
      }),
    )

    it(
      "that break off in the middle of a request change nothing, and harm nothing",
      serving(async (fixture) => {
        const length = `Content-Length: ${body.length}`
        const type = "Content-Type: application/json"
        const start = head(fixture, `PATCH ${extendOne} HTTP/1.1`, type, length)
        await breakOff(fixture, start.slice(0, 30))
        await breakOff(fixture, start)
        await breakOff(fixture, start, body.slice(0, 10))
        await breakOff(
          fixture,
          head(fixture, `PATCH ${extendOne} HTTP/1.1`, type, "Transfer-Encoding: chunked"),
          '5\r\n{"ext',
        )
        const found = await fixture.tenure.memberships.find({ projectId: "p1", userId: "1001" })
        expect(new Date(found.endDate).toISOString()).not.toBe(extend)
        expect((await fixture.call("GET", webhooks)).status).toBe(200)
      }),
    )

    it(
      "that break off before the response has come harm nothing, and what has begun is done",
      serving(async (fixture) => {
        const patch = [
          `PATCH ${extendOne} HTTP/1.1`,
          "Content-Type: application/json",
          `Content-Length: ${body.length}`,
        ]
        const { hostname, port } = new URL(fixture.url)
        await Promise.all(
          Array.from(
            { length: 50 },
            () =>
              new Promise<void>((resolve) => {
                const socket = Net.connect(Number(port), hostname)
                socket.on("error", () => {}).on("close", () => resolve())
                socket.write(head(fixture, ...patch) + body, () => socket.destroy())
              }),
          ),
        )
        expect((await fixture.call("GET", webhooks)).status).toBe(200)
      }),
    )
  })
}
