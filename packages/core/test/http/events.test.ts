import { memory } from "@tenure/memory"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import * as FastCheck from "fast-check"
import { describe, expect, it } from "vitest"
import { ErrorReporter } from "../../src/base/faults.ts"
import { CursorExpired, FeedStore } from "../../src/events/feed-store.ts"
import type { ListenerMessage } from "../../src/events/listeners.ts"
import { makeEventStream } from "../../src/http/events.ts"
import { Handler } from "../../src/http/handler.ts"
import { type ApiRequest, emptyBody } from "../../src/http/request.ts"
import { ApiKeys } from "../../src/keys/api-keys.ts"
import { Memberships } from "../../src/memberships/memberships.ts"
import { createTenure, tenureLayer } from "../../src/tenure.ts"
import { Events } from "../../src/webhooks/published-events.ts"
import { test } from "../support/test.ts"

const events = "/v2/projects/p1/events"

/** Returns a client's dispatched events and its state afterwards, by HTML's rules (9.2.6). */
const parse = (text = "") => {
  const dispatched: Array<{ readonly type: string; readonly data: string; readonly id: string }> =
    []
  let [type, data, id] = ["", "", ""]
  let retry: number | undefined
  for (const line of text.split(/\r\n|\r|\n/)) {
    const colon = line.indexOf(":")
    const field = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "")
    if (line === "") {
      if (data !== "") dispatched.push({ type, data: data.slice(0, -1), id })
      type = data = ""
    } else if (field === "event") type = value
    else if (field === "data") data += `${value}\n`
    else if (field === "id" && !value.includes("\0")) id = value
    else if (field === "retry" && /^\d+$/.test(value)) retry = Number(value)
  }
  return { dispatched, id, retry }
}

type Response = { readonly body: string | AsyncIterable<string> }

/** Starts to read a stream. */
const read = ({ body }: Response) =>
  typeof body === "string" ? expect.fail(body) : body[Symbol.asyncIterator]()

/** Lets running work go on, at this time. */
const settled = Effect.andThen(
  TestClock.adjust(1),
  Effect.promise(() => new Promise((resolve) => setImmediate(resolve))),
)

/** Takes a stream's next text; `undefined` at its end. */
const take = (iterator: AsyncIterator<string>) =>
  Effect.map(
    Effect.promise(() => iterator.next()),
    ({ done, value }) => (done === true ? undefined : String(value)),
  )

/** Requests a stream's next text, which comes later. */
const asking = Effect.fnUntraced(function* (iterator: AsyncIterator<string>) {
  const texts: Array<string | undefined> = []
  void iterator.next().then(({ done, value }) => texts.push(done === true ? undefined : value))
  yield* settled
  expect(texts).toEqual([])
  return texts
})

/** A client with a key. A test can make the feed's cursors expire. */
const clientOfFeed = Effect.gen(function* () {
  const feed = { isExpired: false }
  const store = Layer.effect(
    FeedStore,
    Effect.map(FeedStore, ({ latest, read: page }) => ({
      latest,
      read: (projects, from, size) =>
        feed.isExpired && from !== "now"
          ? Effect.fail(new CursorExpired())
          : page(projects, from, size),
    })),
  )
  const stores = Layer.provideMerge(store, memory())
  const services = yield* Layer.build(Layer.provide(tenureLayer({ expiry: false }), stores))
  yield* Context.get(services, Memberships).createProject("p1")
  const apiKeys = Context.get(services, ApiKeys)
  const { id, token } = yield* apiKeys.issue({ projects: ["p1"] })
  const { publish } = Context.get(services, Events)
  const { handle } = Context.get(services, Handler)
  /** Sends a request for events. */
  const ask = (parts: Partial<ApiRequest> = {}) =>
    handle({
      method: "GET",
      path: events,
      body: emptyBody,
      remoteAddress: "203.0.113.7",
      ...parts,
      headers: { authorization: `Bearer ${token}`, accept: "text/event-stream", ...parts.headers },
    })
  return {
    ask,
    /** Returns a stream's first page, as a client reads it. */
    first: (parts?: Partial<ApiRequest>) =>
      Effect.map(
        Effect.flatMap(ask(parts), (response) => take(read(response))),
        parse,
      ),
    feed,
    publish: (type: string) => publish({ projectId: "p1", type, data: {} }),
    revoke: apiKeys.revoke(id),
  }
})

describe("a stream of events", () => {
  test("tells how long to wait before coming again, and the place where it starts", function* () {
    const { first } = yield* clientOfFeed
    const { dispatched, id, retry } = yield* first()
    expect(retry).toBeGreaterThanOrEqual(1000)
    expect(retry).toBeLessThanOrEqual(3000)
    expect(id).not.toBe("")
    expect(dispatched).toEqual([])
  })

  test("has the id of a page in its last event alone", function* () {
    const { first, publish } = yield* clientOfFeed
    for (const type of ["a", "b", "c"]) yield* publish(type)
    const { dispatched, id } = yield* first({ query: "after=start" })
    expect(dispatched.map((event) => [event.type, event.id])).toEqual([
      ["a", ""],
      ["b", ""],
      ["c", id],
    ])
    const from = (cursor: string) => first({ headers: { "last-event-id": cursor } })
    const again = yield* from(id)
    expect(again.dispatched).toEqual([])
    // A position may print as a different cursor each time, so the test compares the events after it.
    yield* publish("d")
    for (const cursor of [id, again.id]) {
      expect((yield* from(cursor)).dispatched.map(({ type }) => type)).toEqual(["d"])
    }
  })

  test("goes on after Last-Event-ID, whatever after is", function* () {
    const { first, publish } = yield* clientOfFeed
    const { id } = yield* first()
    yield* publish("a")
    const next = yield* first({ headers: { "last-event-id": id }, query: "after=never-was" })
    expect(next.dispatched).toMatchObject([{ type: "a" }])
    const empty = yield* first({ headers: { "last-event-id": "" }, query: "after=start" })
    expect(empty.dispatched).toHaveLength(1)
  })

  test("has a comment when nothing comes", function* () {
    const { ask } = yield* clientOfFeed
    const iterator = read(yield* ask())
    yield* take(iterator)
    const texts = yield* asking(iterator)
    yield* TestClock.adjust(15_000)
    yield* settled
    expect(texts).toEqual([":\n\n"])
  })

  test.each([
    [410, { query: "after=never-was" }],
    [422, { query: "limit=10" }],
    [422, { query: "wait=20" }],
    [422, { query: "types=," }],
    [404, { path: "/v2/projects/p2/events" }],
    [405, { method: "HEAD" }],
    [400, { headers: { "last-event-id": ["a", "b"] } }],
    [400, { headers: { "last-event-id": "a b" } }],
    [401, { headers: { authorization: "Bearer x" } }],
  ])(
    "is refused before it starts as a poll is, and for what only polls have: %s %j",
    function* ([status, parts]) {
      const { ask } = yield* clientOfFeed
      expect((yield* ask(parts)).status).toBe(status)
    },
  )

  test("ends with the event reset if it cannot go on without a gap", function* () {
    const { ask, feed } = yield* clientOfFeed
    const iterator = read(yield* ask())
    yield* take(iterator)
    feed.isExpired = true
    const { dispatched } = parse(yield* take(iterator))
    expect(dispatched).toMatchObject([{ type: "reset", data: '{"reason":"cursor_expired"}' }])
    expect([yield* take(iterator), yield* take(iterator)]).toEqual([undefined, undefined])
  })

  test("ends within ten seconds after its key is revoked", function* () {
    const { ask, revoke } = yield* clientOfFeed
    const iterator = read(yield* ask())
    yield* take(iterator)
    const texts = yield* asking(iterator)
    yield* revoke
    yield* TestClock.adjust(10_000)
    yield* settled
    expect(texts).toEqual([undefined])
  })

  test("ends at once when its client has gone, as told by a signal or by return", function* () {
    const { ask } = yield* clientOfFeed
    const client = new AbortController()
    const signal = () => client.signal
    const iterators = [read(yield* ask({ signal })), read(yield* ask())] as const
    for (const iterator of iterators) yield* take(iterator)
    const texts = [yield* asking(iterators[0]), yield* asking(iterators[1])]
    client.abort()
    void iterators[1].return?.()
    yield* settled
    expect(texts).toEqual([[undefined], [undefined]])
    // Their slots are free.
    for (let count = 0; count < 12; count++) {
      expect((yield* ask({ signal })).status).toBe(200)
      yield* settled
    }
  })

  test("that ends because its access is not known has its client come back later", function* () {
    const message = { _tag: "End", reason: "unavailable" } as const
    const listener = {
      next: Effect.succeed(message),
      receive: (receiver: (message: ListenerMessage) => void) => receiver(message),
      close: Effect.void,
    }
    const stream = makeEventStream({ faults: yield* ErrorReporter, run: Effect.runPromise })
    const response = stream({ listener, signal: undefined, retryMillis: 2000, requestId: "r1" })
    const iterator = read(response)
    expect(yield* take(iterator)).toBe("retry: 10000\n\n")
    expect(yield* take(iterator)).toBeUndefined()
  })

  it("brings any data, as clients read it", async () => {
    // Events have no integers with 16 or more digits.
    const data = FastCheck.jsonValue({ maxDepth: 2 }).filter(
      (value) => !/\d{16}/.test(JSON.stringify(value)),
    )
    const several = FastCheck.array(data, { minLength: 1, maxLength: 5 })
    const brings = async (all: ReadonlyArray<unknown>) => {
      const tenure = await createTenure({ stores: memory() })
      await tenure.memberships.createProject("p1")
      for (const one of all) await tenure.events.publish({ projectId: "p1", type: "a", data: one })
      const response = await tenure.handle({
        method: "GET",
        path: events,
        query: "after=start",
        headers: { accept: "text/event-stream" },
        body: emptyBody,
        remoteAddress: undefined,
        authenticate: () => ({ keyId: "host", projects: "all" }),
      })
      const { value } = await read(response).next()
      const received = parse(value).dispatched.map((event) => JSON.parse(event.data).data)
      expect(received).toEqual(JSON.parse(JSON.stringify(all)))
      await tenure.close()
    }
    await FastCheck.assert(FastCheck.asyncProperty(several, brings), { numRuns: 30 })
  })
})
