/** Clients that wait for 100 Continue. */

import { once } from "node:events"
import { text } from "node:stream/consumers"
import { setImmediate } from "node:timers/promises"
import { exchange, parseResponses, send } from "@tenure/testing/conformance"
import { describe, expect, it } from "vitest"
import { body, connect, extendOne, lines, serving, webhooks } from "./support.ts"

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
