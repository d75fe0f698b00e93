/** The server, and middleware beside it. */

import * as Http from "node:http"
import { exchange, parseResponses, send } from "@tenure/testing/conformance"
import { describe, expect, it } from "vitest"
import { toNodeHandler } from "../src/handler.ts"
import { serve } from "../src/server.ts"
import {
  answering,
  authorized,
  body,
  expectEnvelope,
  extendOne,
  json,
  listenDuringTest,
  ok,
  serveDuringTest,
  serving,
  webhooks,
} from "./support.ts"

describe("a target", () => {
  it.each([
    ["be in absolute form", `http://elsewhere${webhooks}?a=b`, ["Connection: close"]],
    [
      "come with a request to upgrade, which is ignored",
      webhooks,
      ["Connection: Upgrade, close", "Upgrade: websocket"],
    ],
  ])("may %s", (_name, target, more) =>
    serving(async ({ token, url }) => {
      const raw = await exchange(url, authorized(`GET ${target}`, token, ...more))
      expect(parseResponses(raw)[0]?.body).toMatchObject({ code: 200, path: webhooks })
    }),
  )
})

describe("a slow client", () => {
  const options = { headersTimeout: 100, requestTimeout: 200 }

  it("is answered 408 if its header does not arrive in time", () =>
    serving(async ({ url }) => {
      expectEnvelope(await exchange(url, "GET / HTTP/1.1\r\nHost: a\r\n"), 408, "REQUEST_TIMEOUT")
    }, options))

  it("is answered 408 if its body does not arrive in time", () =>
    serving(async ({ tenure, token, url }) => {
      const head = authorized(`PATCH ${extendOne}`, token, ...json)
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
    const port = Number(new URL(await serveDuringTest(tenure)).port)
    await expect(serve(tenure, { port })).rejects.toMatchObject({
      message: `The server cannot listen on 127.0.0.1:${port}: another program listens there. Stop it, or pass another port; 0 takes a free one (EADDRINUSE).`,
      code: "EADDRINUSE",
      stack: expect.stringMatching(/^[^\n]*\n +at .*server\.test\.ts/),
    })
  })

  it("returns a URL with the IPv6 address in brackets", async () => {
    const url = await serveDuringTest(
      answering(async () => ok),
      { host: "::1" },
    )
    expect(url).toMatch(/^http:\/\/\[::1\]:[0-9]+$/)
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

it("middleware answers paths of the API, and calls next for all others", () =>
  serving(async ({ tenure }) => {
    const handler = toNodeHandler(tenure)
    const url = await listenDuringTest(
      Http.createServer((request, response) =>
        handler(request, response, () => response.writeHead(299).end("{}")),
      ),
    )
    expect((await send(url, { path: webhooks })).status).toBe(401)
    expect((await send(url, { method: "PUT", path: `${extendOne}?x` })).status).toBe(401)
    for (const path of ["/", "/v2", "/v2/projects/p1/users", "/v2/users", "/other?/v2/projects/"]) {
      expect((await send(url, { path })).status).toBe(299)
    }
  }))
