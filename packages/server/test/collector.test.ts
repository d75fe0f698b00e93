/** The exporters' `fetch`, against servers that hang or fail. */

import { once } from "node:events"
import { type RequestListener, createServer } from "node:http"
import { freePort } from "@tenure/testing/conformance"
import { expect, it, onTestFinished } from "vitest"
import { makeCollectorFetch } from "../src/collector.ts"

const start = async (listener: RequestListener): Promise<string> => {
  const server = createServer(listener)
  const port = await freePort()
  server.listen(port, "127.0.0.1")
  await once(server, "listening")
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${port}`
}

const hour = 3_600_000

const hangs: RequestListener = () => {}

const neverEnds: RequestListener = (_request, response) => void response.writeHead(200).write("…")

it.each([
  ["an answer", hangs],
  ["the end of an answer", neverEnds],
])("drops what is to be sent while eight requests wait for %s", async (_what, listener) => {
  let requests = 0
  const url = await start((request, response) => {
    requests++
    listener(request, response)
  })
  const send = makeCollectorFetch("metrics", hour, () => {})
  const first = new AbortController()
  const waiting = Array.from({ length: 8 }, () => send(url, { signal: first.signal }))
  expect(await send(url)).toMatchObject({ status: 400 })
  await expect.poll(() => requests).toBe(8)
  first.abort()
  const ends = await Promise.allSettled(waiting)
  expect(ends.map(({ status }) => status)).toEqual(Array(8).fill("rejected"))
  // Requests that have ended do not count.
  const last = new AbortController()
  const again = send(url, { signal: last.signal })
  await expect.poll(() => requests).toBe(9)
  // The collector has failed: only one at a time is sent.
  expect(await send(url)).toMatchObject({ status: 400 })
  last.abort()
  await expect(again).rejects.toThrow("aborted")
})

it.each([hangs, neverEnds])("waits no longer than the timeout", async (listener) => {
  const url = await start(listener)
  const logged: Array<unknown> = []
  const send = makeCollectorFetch("traces", 50, (...line) => logged.push(line))
  await expect(send(url)).rejects.toThrow("timeout")
  await expect(send(url)).rejects.toThrow("timeout")
  expect(logged).toEqual([
    [
      "The collector does not take traces, which are dropped meanwhile",
      "The operation was aborted due to timeout",
    ],
  ])
})

it("logs once that the collector fails, and once that it is back", async () => {
  const statuses = [200, 503, 503, 200, 200]
  const url = await start((_request, response) => response.writeHead(statuses.shift() ?? 500).end())
  const logged: Array<unknown> = []
  const send = makeCollectorFetch("traces", hour, (...line) => logged.push(line))
  while (statuses.length > 0) await send(url)
  expect(logged).toEqual([
    ["The collector does not take traces, which are dropped meanwhile", "status 503"],
    ["The collector takes traces again"],
  ])
})
