/** Pipelined requests, and the turns that they take. */

import { AsyncLocalStorage } from "node:async_hooks"
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { once } from "node:events"
import { type Server, createServer } from "node:http"
import type { Socket } from "node:net"
import { text } from "node:stream/consumers"
import { parseResponses } from "@tenure/testing/conformance"
import { describe, expect, it } from "vitest"
import { toNodeHandler } from "../src/handler.ts"
import { afterPendingTurns, nextTurn, orderRequests } from "../src/pipelining.ts"
import {
  answering,
  body,
  connect,
  extendOne,
  gated,
  lines,
  listenDuringTest,
  ok,
  serveDuringTest,
  serving,
} from "./support.ts"

const get = lines("GET / HTTP/1.1", "Host: a")
const patch =
  lines(
    `PATCH ${extendOne} HTTP/1.1`,
    "Host: a",
    "Content-Type: application/json",
    `Content-Length: ${body.length}`,
  ) + body

/** Runs a test against a node:http server and a connection to it, seen from both sides. */
const connected = async (
  server: Server,
  test: (client: Socket, served: Socket, url: string) => Promise<void>,
): Promise<void> => {
  const url = await listenDuringTest(server)
  const accepted = once(server, "connection")
  const client = await connect(url)
  const [served] = await accepted
  await test(client, served, url)
}

/** Lets the event loop turn until nothing more can happen by itself. */
const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** Reads until the text has arrived so many times. */
const received = (client: Socket, wanted: string, times: number): Promise<string> =>
  new Promise((resolve) => {
    let all = ""
    let count = 0
    let searched = 0
    const onData = (data: Buffer): void => {
      all += String(data)
      for (let at = all.indexOf(wanted, searched); at !== -1; at = all.indexOf(wanted, searched)) {
        count++
        searched = at + wanted.length
      }
      if (count < times) return
      client.off("data", onData)
      resolve(all)
    }
    client.on("data", onData)
  })

describe("a connection", () => {
  it("is not read on while a request on it waits", async () => {
    const { seen, tenure, until } = gated()
    await connected(createServer(toNodeHandler(tenure)), async (client, served) => {
      client.write(get.repeat(40_000))
      await until(1)
      await settled()
      expect(seen).toHaveLength(1)
      expect(served.bytesRead).toBeLessThanOrEqual(2 * 65_536)
    })
  })

  it("is not read on while its client does not read responses", async () => {
    const large = { status: 200, headers: {}, body: "x".repeat(1_000_000) }
    const tenure = answering(async () => large)
    await connected(createServer(toNodeHandler(tenure)), async (client, served) => {
      client.write(get.repeat(40_000))
      while (served.writableLength === 0) await settled()
      await settled()
      expect(served.bytesRead).toBeLessThanOrEqual(2 * 65_536)
      expect(served.writableLength).toBeLessThan(2 * large.body.length)
    })
  })

  it("has its requests answered one after the other, bodies included", async () => {
    const seen: Array<string> = []
    let atOnce = 0
    const tenure = answering(async ({ body: { _tag }, method }) => {
      expect(++atOnce).toBe(1)
      await settled()
      atOnce--
      seen.push(`${method} ${_tag}`)
      return { ...ok, body: JSON.stringify(seen.length) }
    })
    await connected(createServer(toNodeHandler(tenure)), async (client) => {
      const answers = received(client, "HTTP/1.1 200", 30)
      const packet = (get + patch + patch).repeat(10)
      // In pieces that end anywhere, within a body too.
      for (let at = 0; at < packet.length; at += 97) {
        client.write(packet.slice(at, at + 97))
        await new Promise((resolve) => setImmediate(resolve))
      }
      const bodies = parseResponses(await answers).map((one) => one.text)
      expect(bodies).toEqual(Array.from({ length: 30 }, (_, index) => String(index + 1)))
    })
    expect(seen.filter((one) => one === "PATCH Bytes")).toHaveLength(20)
  })

  it.each([2, 30])("has %i requests answered whose client ends behind them", async (count) => {
    const tenure = answering(async () => {
      await settled()
      return ok
    })
    await connected(createServer(toNodeHandler(tenure)), async (client) => {
      client.end(get.repeat(count))
      expect(parseResponses(await text(client))).toHaveLength(count)
    })
  })

  /** A Tenure that answers with the statuses, one after another. */
  const refusing = (maxRefusals: number, ...statuses: ReadonlyArray<number>) => {
    const left = [...statuses]
    const tenure = answering(async () => ({ ...ok, status: left.shift() ?? 429 }))
    return { left, tenure: { ...tenure, maxRefusals } }
  }

  /** The statuses for seven pipelined requests, and what is said about the connection. */
  const seven = async (client: Socket, request = get) => {
    client.write(request.repeat(7))
    const responses = parseResponses(await text(client))
    return responses.map(({ headers, status }) => `${status} ${headers["connection"]}`)
  }

  it("closes after so many refusals in a row", async () => {
    const { left, tenure } = refusing(3, 429, 429, 200, 429, 429, 429, 200)
    await connected(createServer(toNodeHandler(tenure)), async (client) => {
      expect(await seven(client)).toEqual([
        "429 keep-alive",
        "429 keep-alive",
        "200 keep-alive",
        "429 keep-alive",
        "429 keep-alive",
        "429 close",
      ])
    })
    expect(left).toEqual([200])
  })

  it("closes after so many refusals by a handler that is not Tenure's for Node", async () => {
    const left = [429, 429, 200, 429, 429, 429, 200]
    const server = createServer((_request, response) =>
      response.writeHead(left.shift() ?? 500, { "Content-Length": 0 }).end(),
    )
    await connected(orderRequests(server, { maxRefusals: 3 }), async (client) => {
      const statuses = (await seven(client)).map((one) => Number.parseInt(one, 10))
      expect(statuses).toEqual([429, 429, 200, 429, 429, 429])
    })
    expect(left).toEqual([200])
  })

  it("counts each refusal once if the server is put in order, too", async () => {
    const server = createServer(toNodeHandler(refusing(5).tenure))
    await connected(orderRequests(server, { maxRefusals: 3 }), async (client) => {
      expect(await seven(client)).toHaveLength(5)
    })
  })

  it("closes after so many refusals of requests without a Host header", async () => {
    const url = await serveDuringTest(refusing(3).tenure, { shutdownTimeout: 0 })
    expect(await seven(await connect(url), lines("GET / HTTP/1.1"))).toHaveLength(3)
  })
})

/** Counts the requests that Node has made from what it has read, while a test runs. */
const counting = async (test: (made: () => number) => Promise<void>): Promise<void> => {
  const channel = "http.server.request.start"
  let count = 0
  const onStart = (): void => void count++
  subscribe(channel, onStart)
  try {
    await test(() => count)
  } finally {
    unsubscribe(channel, onStart)
  }
}

describe("once a connection has sent many requests at once", () => {
  const many = 500

  /** Answers each request with its body, in order. */
  const echo = (): Server =>
    orderRequests(
      createServer((request, response) => {
        let all = ""
        request.on("data", (data) => (all += String(data)))
        request.on("end", () => response.end(all || "none"))
      }),
    )

  it("each connection has little of it parsed at a time", () =>
    counting(async (made) => {
      const server = orderRequests(createServer(() => {}))
      await connected(server, async (first, _served, url) => {
        first.write(get.repeat(many))
        while (made() < many / 2) await settled()
        await settled()
        const before = made()
        const others = await Promise.all(Array.from({ length: 10 }, () => connect(url)))
        for (const other of others) other.write(get.repeat(many))
        while (made() < before + 10) await settled()
        await settled()
        expect((made() - before) / 10).toBeLessThan(50)
      })
    }))

  it("all are answered, in order and with their bodies", () =>
    connected(echo(), async (first, _served, url) => {
      const all = Array.from({ length: many }, (_, index) => `${index} `.repeat(index % 50))
      const packet = all.map((one) =>
        one === ""
          ? get
          : lines("PUT / HTTP/1.1", "Host: a", `Content-Length: ${one.length}`) + one,
      )
      const answered = async (client: Socket): Promise<void> => {
        const answers = received(client, "HTTP/1.1 200", many)
        client.write(packet.join(""))
        const texts = parseResponses(await answers).map((one) => one.text)
        expect(texts.slice(0, -1)).toEqual(all.map((one) => one || "none").slice(0, -1))
      }
      await answered(first)
      const second = await connect(url)
      await answered(second)
      second.end(lines("GET / HTTP/1.1", "Host: a"))
      await once(second, "end")
    }))

  it("a connection may still be upgraded", () => {
    const server = echo().on("upgrade", (_request, socket: Socket, head: Buffer) => {
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n\r\n${String(head)}`)
      socket.on("data", (data) => socket.write(data))
    })
    const upgrade = lines("GET / HTTP/1.1", "Host: a", "Connection: upgrade", "Upgrade: echo")
    return connected(server, async (first, _served, url) => {
      const answers = received(first, "HTTP/1.1 200", many)
      first.write(get.repeat(many))
      await answers
      const second = await connect(url)
      const echoed = received(second, "over", 1)
      second.write(upgrade)
      await once(second, "data")
      second.write(`${"two ".repeat(1000)}over`)
      expect((await echoed).replace(/^.*\r\n\r\n/s, "")).toBe(`${"two ".repeat(1000)}over`)
      const third = await connect(url)
      const ended = new Promise((resolve) => third.on("end", resolve).on("close", resolve))
      third.resume().write(upgrade + "x".repeat(5000))
      await ended
    })
  })
})

it("a connection that was upgraded stays as it is when another one sends many requests at once", () => {
  const server = orderRequests(createServer((_request, response) => response.end()))
  const readers: Array<unknown> = []
  server.on("upgrade", (_request, socket: Socket) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\n\r\n")
    socket.on("data", function (this: unknown, data: Buffer) {
      readers.push(this)
      socket.write(data)
    })
  })
  return connected(server, async (first, _served, url) => {
    first.write(lines("GET / HTTP/1.1", "Host: a", "Connection: upgrade", "Upgrade: echo"))
    await once(first, "data")
    const second = await connect(url)
    const answers = received(second, "HTTP/1.1 200", 500)
    second.write(get.repeat(500))
    await answers
    const echoed = received(first, "over", 1)
    first.write(`${"x".repeat(3000)}over`)
    expect(await echoed).toHaveLength(3004)
    expect(readers).not.toContain(undefined)
  })
})

it("the requests of any host are put in order", async () => {
  let atOnce = 0
  const server = orderRequests(
    createServer((_request, response) => {
      expect(++atOnce).toBe(1)
      setImmediate(() => {
        atOnce--
        response.end("{}")
      })
    }),
  )
  await connected(server, async (client) => {
    const answers = received(client, "HTTP/1.1 200", 100)
    client.write(get.repeat(100))
    await answers
  })
})

it("turns run in order, and a turn that is added during another runs last", async () => {
  const taken: Array<string> = []
  await new Promise<void>((resolve) => {
    nextTurn(() => {
      taken.push("first")
      nextTurn(() => {
        taken.push("last")
        resolve()
      })
    })
    nextTurn(() => taken.push("second"))
    expect(taken).toEqual([])
  })
  expect(taken).toEqual(["first", "second", "last"])
})

it("what runs after turns runs after all of them, in their order", async () => {
  const taken: Array<string> = []
  await new Promise<void>((resolve) => {
    nextTurn(() => {
      taken.push("first")
      afterPendingTurns(() => taken.push("after first"))
    })
    nextTurn(() => {
      taken.push("second")
      afterPendingTurns(resolve)
    })
  })
  afterPendingTurns(() => taken.push("at once"))
  expect(taken).toEqual(["first", "second", "after first", "at once"])
})

it("a batch leaves few objects behind, however many turns wait", async () => {
  let [pending, most] = [0, 0]
  const end = () => pending--
  await new Promise<void>((resolve) => {
    for (let turn = 0; turn < 200; turn++) {
      nextTurn(() => {
        most = Math.max(most, ++pending)
        process.nextTick(end)
        if (turn === 199) resolve()
      })
    }
  })
  expect(most).toBe(64)
})

it("the host's authentication runs in the async context of the request", async () => {
  const context = new AsyncLocalStorage<string>()
  await serving(async ({ tenure }) => {
    const handler = toNodeHandler(tenure, {
      authenticate: () => ({ keyId: context.getStore() ?? "nobody", projects: ["p1"] }),
    })
    await serving(
      async ({ url }) => {
        const extend = async (name: string) => {
          const headers = { "content-type": "application/json", "x-name": name }
          const response = await fetch(url + extendOne, { method: "PATCH", headers, body })
          await response.text()
          return response.status
        }
        const names = Array.from({ length: 10 }, (_, index) => `client${index}`)
        expect(new Set(await Promise.all(names.map(extend)))).toEqual(new Set([200]))
        const history = await tenure.memberships.history({ projectId: "p1", limit: names.length })
        expect(history.map(({ origin }) => origin.keyId).toSorted()).toEqual(names)
      },
      {
        listener: (request, response) =>
          context.run(String(request.headers["x-name"]), () => handler(request, response)),
      },
    )
  })
})
