import { once } from "node:events"
import type { ServerResponse } from "node:http"
import type { Tenure } from "@tenure/core"
import fc from "fast-check"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { createClient } from "../src/create-client.ts"
import { isTransient, reconnectDelay } from "../src/request.ts"
import { TenureError } from "../src/response.ts"
import { type Frame, type Subscription, makeParser } from "../src/subscribe.ts"
import { answering, errorOf, failure, recordedSleep, serving } from "./support.ts"

const project_id = "p1"

let controller: AbortController
let signal: AbortSignal

/** Ends the subscription. */
const end = () => controller.abort()

beforeEach(() => {
  controller = new AbortController()
  signal = controller.signal
})

afterEach(() => {
  end()
  vi.useRealTimers()
})

interface OwnEvents {
  readonly counted: { readonly n: number }
}

type Given = Partial<Subscription<OwnEvents>>

/** Returns subscription callbacks that record their arguments, and end after the event numbered `last`. */
const noting = (last: number) => {
  const numbers: Array<number> = []
  const cursors: Array<string> = []
  return {
    numbers,
    cursors,
    onCursor: (cursor: string) => void cursors.push(cursor),
    onEvent: (event: Parameters<Subscription<OwnEvents>["onEvent"]>[0]) => {
      if (event.type !== "counted") return
      numbers.push(event.data.n)
      if (event.data.n === last) end()
    },
  }
}

const upTo = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, n) => n)

const publish = async (tenure: Tenure, numbers: ReadonlyArray<number>): Promise<void> => {
  for (const n of numbers) {
    await tenure.events.publish({ projectId: project_id, type: "counted", data: { n } })
  }
}

/** Makes a `fetch` whose n-th response breaks after `lengths[n]` bytes, and arrives in chunks sized by `sizes`. */
const breaking = (lengths: Array<number>, sizes: ReadonlyArray<number>): typeof fetch => {
  const broken = new TypeError("terminated")
  return async (input, init) => {
    const response = await fetch(input, init)
    if (response.body === null) return response
    let left = lengths.shift() ?? Infinity
    let count = 0
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, stream) => {
        let rest = chunk.subarray(0, left)
        left -= rest.length
        while (rest.length > 0) {
          const size = sizes[count++ % sizes.length] ?? rest.length
          stream.enqueue(rest.slice(0, size))
          rest = rest.subarray(size)
        }
        if (left === 0) stream.error(broken)
      },
    })
    const { headers, status } = response
    return new Response(response.body.pipeThrough(cut), { headers, status })
  }
}

describe("a subscription", () => {
  it("gets every event in order, live", () =>
    serving(async ({ client, tenure }) => {
      const { cursors, numbers, ...functions } = noting(29)
      await publish(tenure, upTo(10))
      const { events } = client()
      const given = { project_id, after: "start", signal, ...functions }
      const subscribed = events.subscribe<OwnEvents>(given)
      await expect.poll(() => numbers.length).toBe(10)
      await publish(tenure, upTo(30).slice(10))
      await subscribed
      expect(numbers).toEqual(upTo(30))
      expect(new Set(cursors).size).toBe(cursors.length)
      const page = await events.list({ project_id, after: cursors.at(-1) })
      expect(page.total).toBeLessThanOrEqual(20)
    }))

  it("gets the types that it asks for, each as its type says", () =>
    serving(async ({ client, tenure }) => {
      const endDates: Array<string> = []
      const endDate = new Date("2099-01-01")
      await publish(tenure, [1])
      await tenure.memberships.extend({ projectId: project_id, userId: "1001", endDate })
      await client().events.subscribe({
        project_id,
        after: "start",
        types: ["membership.extended", "membership.ended"],
        signal,
        onEvent: (event) => {
          if (event.type === "membership.extended") endDates.push(event.data.new_end_date)
          else expect(event.type).toBe("membership.ended")
          end()
        },
      })
      expect(endDates).toEqual(["2099-01-01T00:00:00.000Z"])
    }))

  it("gets each event once, wherever its connections break", () => {
    const plenty = { limit: 1e6, window: 1 }
    const lengths = fc.array(fc.integer({ min: 1, max: 6000 }), { minLength: 1, maxLength: 6 })
    const sizes = fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 5 })
    return serving(
      async ({ client, tenure }) => {
        await publish(tenure, upTo(40))
        let connections = 0
        const getsAll = async (lengthsOf: ReadonlyArray<number>, pieces: ReadonlyArray<number>) => {
          controller = new AbortController()
          const { cursors: _, numbers, ...functions } = noting(39)
          const { sleep, waits } = recordedSleep()
          const { events } = client({ fetch: breaking([...lengthsOf], pieces), sleep })
          const given = { project_id, after: "start", signal: controller.signal, ...functions }
          await events.subscribe<OwnEvents>(given)
          expect(numbers).toEqual(upTo(40))
          connections += waits.length
        }
        await fc.assert(fc.asyncProperty(lengths, sizes, getsAll), { numRuns: 20 })
        expect(connections).toBeGreaterThan(20)
      },
      { rateLimits: { perKey: plenty, perAddress: plenty, burst: plenty } },
    )
  })
})

const stream = { "content-type": "text/event-stream" }

const frame = (n: number, id?: string): string => {
  const data = JSON.stringify({ id: `event-${n}`, type: "counted", timestamp: "", data: { n } })
  return `${id === undefined ? "" : `id: ${id}\n`}event: counted\ndata: ${data}\n\n`
}

/** Begins a stream response. */
const streaming = (response: ServerResponse, text: string): void =>
  void response.writeHead(200, stream).write(text)

/** Subscribes at a server scripted by a test, by default up to the first event. */
const scripted = (
  script: (response: ServerResponse, count: number, after: string | null) => void,
  test: (subscribe: (given: Given) => Promise<void>, waits: ReadonlyArray<number>) => unknown,
) =>
  answering(
    (response, { url = "" }, count) =>
      script(response, count, new URL(url, "http://localhost").searchParams.get("after")),
    async ({ client }) => {
      const { sleep, waits } = recordedSleep()
      const { events } = client({ sleep })
      const subscribe = (given: Given) =>
        events.subscribe<OwnEvents>({ project_id, signal, onEvent: end, ...given })
      await test(subscribe, waits)
    },
  )

describe("the place from which a subscription goes on", () => {
  it("is that after the last whole page; of the other, events that were processed are left out", async () => {
    const places: Array<string | null> = []
    const { cursors, numbers, ...functions } = noting(5)
    await scripted(
      (response, count, after) => {
        places.push(after)
        response.writeHead(200, stream)
        if (count === 1) {
          // A server may divide pages differently the second time.
          const text = `${frame(1)}${frame(2, "a")}${frame(3)}${frame(4)}`
          return void response.write(text, () => response.destroy())
        }
        response.write(`${frame(3, "b")}${frame(4)}${frame(5, "c")}`)
      },
      (subscribe) => subscribe({ after: "start", ...functions }),
    )
    expect(places).toEqual(["start", "a"])
    expect(numbers).toEqual([1, 2, 3, 4, 5])
    expect(cursors).toEqual(["a", "b", "c"])
  })

  it("is not behind an event that could not be processed", async () => {
    const failed = new Error("the program's")
    const cursors: Array<string> = []
    await scripted(
      (response) => streaming(response, frame(1, "a") + frame(2, "b")),
      async (subscribe) => {
        const onEvent: Given["onEvent"] = async ({ id }) => {
          if (id === "event-2") throw failed
        }
        const onCursor = (cursor: string) => void cursors.push(cursor)
        await expect(subscribe({ onEvent, onCursor })).rejects.toBe(failed)
      },
    )
    expect(cursors).toEqual(["a"])
  })
})

describe("events that are missing", () => {
  const expired = { error_code: "CURSOR_EXPIRED", message: "Too old." }
  const reset = 'event: reset\ndata: {"reason":"cursor_expired"}\n\n'
  const answers = {
    "before the connection": (response: ServerResponse) =>
      void response.writeHead(410).end(failure(410, expired)),
    "on the way": (response: ServerResponse) => void response.writeHead(200, stream).end(reset),
  }

  it.each(Object.entries(answers))("%s end a subscription that has no `onReset`", (_, answer) =>
    scripted(answer, (subscribe) =>
      expect(subscribe({ after: "old" })).rejects.toMatchObject({ code: "CURSOR_EXPIRED" }),
    ),
  )

  it.each(Object.entries(answers))(
    "%s are read anew at the place where it goes on",
    (_, answer) => {
      const story: Array<string> = []
      return scripted(
        (response, count, after) => {
          story.push(`after ${after}`)
          if (count === 1) return answer(response)
          streaming(response, `id: now\n\n${frame(1, "next")}`)
        },
        async (subscribe) => {
          await subscribe({
            after: "old",
            onReset: async () => void story.push("read anew"),
            onCursor: (cursor) => void story.push(cursor),
            onEvent: () => {
              story.push("event")
              end()
            },
          })
          expect(story).toEqual(["after old", "after null", "read anew", "now", "event", "next"])
        },
      )
    },
  )

  it("are read from where `onReset` says", () => {
    const places: Array<string | null> = []
    return scripted(
      (response, count, after) => {
        places.push(after)
        if (count === 1) return answers["on the way"](response)
        streaming(response, count === 2 ? "id: now\n\n" : frame(1))
      },
      async (subscribe) => {
        await subscribe({ onReset: () => "start" })
        expect(places).toEqual([null, null, "start"])
      },
    )
  })
})

describe("a connection that fails", () => {
  it("is followed by another when the server asks for it, and not all at once", () => {
    const unavailable = failure(503, { error_code: "SERVICE_UNAVAILABLE", message: "Not now." })
    const codes: Array<string> = []
    return scripted(
      (response, count) => {
        if (count === 1)
          return void response.writeHead(503, { "retry-after": "7" }).end(unavailable)
        if (count === 2) return void response.writeHead(502).end("<html>")
        if (count === 3) return void response.destroy()
        streaming(response, frame(1))
      },
      async (subscribe, waits) => {
        await subscribe({ onRetry: ({ code }) => void codes.push(code) })
        expect(codes).toEqual(["SERVICE_UNAVAILABLE", "INVALID_RESPONSE", "NETWORK_ERROR"])
        const [first = 0, second = 0, third = 0] = waits
        expect(first).toBeGreaterThanOrEqual(7000)
        expect(first).toBeLessThanOrEqual(8000)
        expect(second).toBeLessThanOrEqual(2000)
        expect(third).toBeLessThanOrEqual(4000)
      },
    )
  })

  it("is one at which nothing arrives for 45 seconds", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    const codes: Array<string> = []
    await scripted(
      (response, count) => streaming(response, count === 1 ? ":\n\n" : frame(1)),
      async (subscribe) => {
        const subscribed = subscribe({ onRetry: ({ code }) => void codes.push(code) })
        while (!signal.aborted) {
          await vi.advanceTimersByTimeAsync(1000)
          await new Promise(setImmediate)
        }
        await subscribed
      },
    )
    expect(codes).toEqual(["TIMEOUT"])
  })

  it("is waited for as long as the server says after an end", () =>
    scripted(
      (response, count) => {
        if (count === 1) return void response.writeHead(200, stream).end("retry: 10\n\n")
        streaming(response, frame(1))
      },
      async (subscribe, waits) => {
        await subscribe({})
        expect(waits.length).toBe(1)
        expect(waits[0]).toBeLessThanOrEqual(10)
      },
    ))

  it("has an event that is too long", () =>
    answering(
      (response) => streaming(response, `data: ${"x".repeat(2000)}`),
      async ({ client }) => {
        const { events } = client({ maxResponseBytes: 1000 })
        const subscribed = events.subscribe({ project_id, signal, onEvent: end })
        await expect(subscribed).rejects.toMatchObject({ code: "INVALID_RESPONSE" })
      },
    ))

  it.each([
    ["PROJECT_NOT_FOUND", 404, { project_id: "p9" }, {}],
    ["UNAUTHORIZED", 401, {}, { token: "nobody" }],
    ["VALIDATION_ERROR", 422, { types: ["not a type"] }, {}],
  ])("with %s is the last one", (code, status, given, options) =>
    serving(async ({ client }) => {
      const { sleep, waits } = recordedSleep()
      const { events } = client({ sleep, ...options })
      const subscribed = events.subscribe({ project_id, signal, onEvent: end, ...given })
      await expect(subscribed).rejects.toMatchObject({ name: "TenureError", code, status })
      expect(waits).toEqual([])
    }),
  )

  it("with a page that is no event stream is the last one", () =>
    scripted(
      (response) => void response.end("<html>"),
      (subscribe) =>
        expect(subscribe({})).rejects.toMatchObject({ code: "INVALID_RESPONSE", status: 200 }),
    ))
})

describe("a ticket", () => {
  it("is asked for anew for each connection, and takes the place of the token", () => {
    const requests: Array<unknown> = []
    return answering(
      (response, request, count) => {
        const { searchParams } = new URL(request.url ?? "", "http://localhost")
        requests.push([searchParams.get("ticket"), request.headers.authorization])
        if (count < 3) return void response.writeHead(200, stream).end()
        streaming(response, frame(1))
      },
      async ({ url }) => {
        const { sleep, waits } = recordedSleep()
        let count = 0
        const ticket = async () => {
          count++
          // The page's own backend may be away, too.
          if (count === 2) throw new TypeError("Failed to fetch")
          return `ticket ${count}`
        }
        const { events } = createClient({ baseUrl: url, sleep })
        await events.subscribe({ project_id, signal, ticket, onEvent: end })
        const tickets = ["ticket 1", "ticket 3", "ticket 4"]
        expect(requests).toEqual(tickets.map((one) => [one, undefined]))
        expect(waits.length).toBe(3)
      },
    )
  })

  it.each<readonly [string, () => Promise<Response>]>([
    [
      "server",
      async () => {
        const message = "No ticket the-ticket."
        return new Response(failure(401, { error_code: "UNAUTHORIZED", message }), { status: 401 })
      },
    ],
    ["runtime", () => Promise.reject(new TypeError("cannot fetch ?ticket=the-ticket"))],
  ])("is in no error, though the %s names it", async (_, fetch) => {
    const { events } = createClient({ baseUrl: "http://localhost", fetch })
    const ticket = async () => "the-ticket"
    const onRetry = (error: TenureError) => Promise.reject(error)
    const error = await errorOf(events.subscribe({ project_id, ticket, onRetry, onEvent: end }))
    expect(error).toBeInstanceOf(TenureError)
    const cause = error instanceof Error && error.cause
    expect(`${error} ${JSON.stringify(error)} ${cause}`).not.toContain("the-ticket")
  })

  it("that its owner may not get ends the subscription", async () => {
    const refused = new TenureError({ code: "UNAUTHORIZED", message: "Who?", status: 401 })
    const { events } = createClient({ baseUrl: "http://localhost" })
    const ticket = () => Promise.reject(refused)
    const subscribed = events.subscribe({ project_id, ticket, onEvent: end })
    await expect(subscribed).rejects.toBe(refused)
  })
})

it("nothing more is read while the functions of a subscription are waited for", async () => {
  let processed = 0
  let most = 0
  await scripted(
    (response) => {
      response.writeHead(200, stream)
      const comment = `: ${"x".repeat(65_536)}\n`
      const send = (n: number): void => {
        if (response.destroyed || n > 2000) return
        most = n
        if (response.write(frame(n, `${n}`) + comment)) setImmediate(send, n + 1)
        else response.once("drain", () => send(n + 1))
      }
      send(1)
    },
    async (subscribe) => {
      const onEvent = async () => {
        processed++
        if (processed < 3) return
        // While the server can still send.
        let before = -1
        while (before !== most) {
          before = most
          await new Promise((resolve) => setTimeout(resolve, 50))
        }
        end()
      }
      await subscribe({ onEvent })
    },
  )
  expect(processed).toBe(3)
  expect(most).toBeLessThan(2000)
})

describe("the signal", () => {
  const endSoon = () => void setImmediate(end)

  it("that was aborted before lets nothing be sent", () =>
    scripted(
      () => expect.unreachable(),
      (subscribe) => {
        end()
        return subscribe({})
      },
    ))

  it("closes the connection", async () => {
    let closed: Promise<unknown> = Promise.resolve()
    await scripted(
      (response) => {
        closed = once(response, "close")
        streaming(response, frame(1))
      },
      async (subscribe) => {
        await subscribe({ onEvent: endSoon })
        await closed
      },
    )
  })

  it("ends a wait", () =>
    answering(
      (response) => void response.writeHead(503, { "retry-after": "100000" }).end("busy"),
      ({ client }) =>
        client().events.subscribe({ project_id, signal, onRetry: endSoon, onEvent: end }),
    ))
})

describe("the wait before the next connection", () => {
  const longest = 2_147_483_647

  it("is bounded, and never shorter than the server asks for", () => {
    fc.assert(
      fc.property(
        fc.option(fc.integer({ min: 0, max: 1e9 }), { nil: undefined }),
        fc.nat(5000),
        fc.nat(1e12),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (retryAfter, failures, first, random) => {
          const error = new TenureError({ code: "NETWORK_ERROR", message: "", retryAfter })
          const least = Math.min(longest, 1000 * (retryAfter ?? 0))
          const wait = reconnectDelay(error, failures, first, random)
          expect(wait).toBeGreaterThanOrEqual(least)
          expect(wait).toBeLessThanOrEqual(Math.min(longest, least + 30_000))
        },
      ),
    )
  })

  it("grows with every failure, even if the server says that none is needed", () => {
    const waits = [0, 10, 20, 2000].map((failures) => reconnectDelay(undefined, failures, 0, 1))
    expect(waits).toEqual([1, 1024, 30_000, 30_000])
  })

  it.each([
    ["NETWORK_ERROR", undefined, true],
    ["INTERNAL_ERROR", 500, true],
    ["RATE_LIMIT_EXCEEDED", 429, true],
    ["INVALID_RESPONSE", 502, true],
    ["INVALID_RESPONSE", 302, false],
    ["FORBIDDEN", 403, false],
  ] as const)("%s with the status %s is tried again: %s", (code, status, expected) => {
    expect(isTransient(new TenureError({ code, message: "", status }))).toBe(expected)
  })
})

/** The standard's algorithm (HTML, 9.2.6), word by word, for a whole stream. */
const standard = (whole: string): ReadonlyArray<Frame> => {
  const frames: Array<Frame> = []
  const lines = whole.split(/\r\n|\n|\r/)
  lines.pop()
  let data = ""
  let event = ""
  let id: string | undefined
  let retry: number | undefined
  for (const line of lines) {
    if (line === "") {
      frames.push({
        event: event || "message",
        data: data ? data.slice(0, -1) : undefined,
        id,
        retry,
      })
      data = ""
      event = ""
      retry = undefined
      continue
    }
    const colon = line.indexOf(":")
    if (colon === 0) continue
    const name = colon < 0 ? line : line.slice(0, colon)
    const after = colon < 0 ? "" : line.slice(colon + 1)
    const value = after.startsWith(" ") ? after.slice(1) : after
    if (name === "event") event = value
    if (name === "data") data += `${value}\n`
    if (name === "id" && !value.includes("\0")) id = value
    if (name === "retry" && /^[0-9]+$/.test(value)) retry = Number.parseInt(value, 10)
  }
  return frames
}

describe("an event stream", () => {
  const words = ["data", "event", "id", "retry", ":", " ", "\r", "\n", "\r\n", "\n\n", "7"]
  const others = ["é\u2028", "\0"]
  const streams = fc
    .array(fc.constantFrom(...words, ...others), { maxLength: 60 })
    .map((parts) => parts.join(""))

  it("is read as the standard says, wherever it is cut", () => {
    fc.assert(
      fc.property(streams, fc.array(fc.nat(80)), (text, cuts) => {
        const borders = [0, ...cuts.toSorted((a, b) => a - b), text.length]
        const pieces = borders.map((border, index) => text.slice(borders[index - 1] ?? 0, border))
        expect(pieces.flatMap(makeParser())).toEqual(standard(text))
      }),
      { numRuns: 2000 },
    )
  })

  it("has frames with fields, of which the id lasts", () => {
    const text =
      ": comment\nid: 7\nretry: 1500\ndata: one\ndata:  two\n\nevent: a.b\ndata\n\ndata: none"
    expect(makeParser()(text)).toEqual([
      { event: "message", id: "7", retry: 1500, data: "one\n two" },
      { event: "a.b", id: "7", retry: undefined, data: "" },
    ])
  })
})
