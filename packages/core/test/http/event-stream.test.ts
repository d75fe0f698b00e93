import { describe, expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import * as FastCheck from "fast-check"
import { Faults } from "../../src/base/faults.ts"
import { CursorExpired, FeedStore } from "../../src/events/feed-store.ts"
import type { ListenerMessage } from "../../src/events/listeners.ts"
import { makeEventStream } from "../../src/http/events.ts"
import { Handler } from "../../src/http/handler.ts"
import { type ApiRequest, emptyBody } from "../../src/http/request.ts"
import { ApiKeys } from "../../src/keys/api-keys.ts"
import { Memberships } from "../../src/memberships/memberships.ts"
import { type Services, type StorePorts, createTenure, tenureLayer } from "../../src/tenure.ts"
import { Events } from "../../src/webhooks/published-events.ts"

const events = "/v2/projects/p1/events"

/** What a client dispatches, and what it knows then, by the rules of HTML (9.2.6). */
const parse = (text: string) => {
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

interface Client {
  /** Sends a request for events. */
  readonly ask: (
    parts?: Partial<ApiRequest>,
  ) => Effect.Effect<{ readonly status: number; readonly body: string | AsyncIterable<string> }>
  readonly revoke: Effect.Effect<void>
}

/** The store of the feed, whose cursors a test can make expire. */
const stores = (feed: { isExpired: boolean }) =>
  Layer.effectContext(
    Effect.map(Effect.context<StorePorts>(), (context) => {
      const { latest, read } = Context.get(context, FeedStore)
      return Context.add(context, FeedStore, {
        latest,
        read: (projects, from, size) =>
          feed.isExpired && from !== "now"
            ? Effect.fail(new CursorExpired())
            : read(projects, from, size),
      })
    }),
  ).pipe(Layer.provide(memory()))

/** Declares a test with a client. */
const test = <A, E>(
  name: string,
  run: (client: Client, feed: { isExpired: boolean }) => Effect.Effect<A, E, Services>,
) => {
  const feed = { isExpired: false }
  return it.effect(name, () =>
    Effect.gen(function* () {
      yield* (yield* Memberships).createProject("p1")
      const apiKeys = yield* ApiKeys
      const { id, token } = yield* apiKeys.issue({ projects: ["p1"] })
      const { handle } = yield* Handler
      const client: Client = {
        ask: (parts = {}) =>
          handle({
            method: "GET",
            path: events,
            body: emptyBody,
            remoteAddress: "203.0.113.7",
            ...parts,
            headers: {
              authorization: `Bearer ${token}`,
              accept: "text/event-stream",
              ...parts.headers,
            },
          }),
        revoke: Effect.orDie(apiKeys.revoke(id)),
      }
      return yield* run(client, feed)
    }).pipe(Effect.provide(tenureLayer({ expiry: false }).pipe(Layer.provide(stores(feed))))),
  )
}

const publish = (type: string, data: unknown = {}) =>
  Effect.flatMap(Events, ({ publish: store }) => store({ projectId: "p1", type, data }))

/** Starts to read a stream. */
const read = ({ body }: { readonly body: string | AsyncIterable<string> }) =>
  typeof body === "string" ? expect.fail(body) : body[Symbol.asyncIterator]()

/** Lets what is under way go on, at this time. */
const settled = Effect.andThen(
  TestClock.adjust(1),
  Effect.promise(() => new Promise((resolve) => setImmediate(resolve))),
)

/** Takes the next text of a stream; `undefined` at its end. */
const take = (iterator: AsyncIterator<string>) =>
  Effect.map(
    Effect.promise(() => iterator.next()),
    ({ done, value }) => (done === true ? undefined : String(value)),
  )

/** Asks for the next text of a stream, which comes later. */
const asking = Effect.fnUntraced(function* (iterator: AsyncIterator<string>) {
  const texts: Array<string | undefined> = []
  void iterator.next().then(({ done, value }) => texts.push(done === true ? undefined : value))
  yield* settled
  expect(texts).toEqual([])
  return texts
})

describe("a stream of events", () => {
  test("tells how long to wait before coming again, and the place where it starts", ({ ask }) =>
    Effect.gen(function* () {
      const first = parse((yield* take(read(yield* ask()))) ?? "")
      expect(first.retry).toBeGreaterThanOrEqual(1000)
      expect(first.retry).toBeLessThanOrEqual(3000)
      expect(first.id).not.toBe("")
      expect(first.dispatched).toEqual([])
    }))

  test("has the id of a page in its last event alone", ({ ask }) =>
    Effect.gen(function* () {
      for (const type of ["a", "b", "c"]) yield* publish(type)
      const text = (yield* take(read(yield* ask({ query: "after=start" })))) ?? ""
      const { dispatched, id } = parse(text)
      expect(dispatched.map((event) => [event.type, event.id])).toEqual([
        ["a", ""],
        ["b", ""],
        ["c", id],
      ])
      const from = (cursor: string) =>
        Effect.gen(function* () {
          const page = yield* take(read(yield* ask({ headers: { "last-event-id": cursor } })))
          return parse(page ?? "")
        })
      const again = yield* from(id)
      expect(again.dispatched).toEqual([])
      // A place may have another cursor each time that it is printed: what counts is what comes after it.
      yield* publish("d")
      for (const cursor of [id, again.id]) {
        expect((yield* from(cursor)).dispatched.map(({ type }) => type)).toEqual(["d"])
      }
    }))

  test("goes on after Last-Event-ID, whatever after is", ({ ask }) =>
    Effect.gen(function* () {
      const { id } = parse((yield* take(read(yield* ask()))) ?? "")
      yield* publish("a")
      const headers = { "last-event-id": id }
      const text = yield* take(read(yield* ask({ headers, query: "after=never-was" })))
      expect(parse(text ?? "").dispatched.map(({ type }) => type)).toEqual(["a"])
      const empty = yield* ask({ headers: { "last-event-id": "" }, query: "after=start" })
      expect(parse((yield* take(read(empty))) ?? "").dispatched).toHaveLength(1)
    }))

  test("has a comment when nothing comes", ({ ask }) =>
    Effect.gen(function* () {
      const iterator = read(yield* ask())
      yield* take(iterator)
      const texts = yield* asking(iterator)
      yield* TestClock.adjust(15_000)
      yield* settled
      expect(texts).toEqual([":\n\n"])
    }))

  test("is refused before it starts as a poll is, and for what only polls have", ({ ask }) =>
    Effect.gen(function* () {
      const statusOf = (parts: Partial<ApiRequest>) =>
        Effect.map(ask(parts), ({ status }) => status)
      expect(yield* statusOf({ query: "after=never-was" })).toBe(410)
      expect(yield* statusOf({ query: "limit=10" })).toBe(422)
      expect(yield* statusOf({ query: "wait=20" })).toBe(422)
      expect(yield* statusOf({ query: "types=," })).toBe(422)
      expect(yield* statusOf({ path: "/v2/projects/p2/events" })).toBe(404)
      expect(yield* statusOf({ method: "HEAD" })).toBe(405)
      expect(yield* statusOf({ headers: { "last-event-id": ["a", "b"] } })).toBe(400)
      expect(yield* statusOf({ headers: { "last-event-id": "a b" } })).toBe(400)
      expect(yield* statusOf({ headers: { authorization: "Bearer x" } })).toBe(401)
    }))

  test("ends with the event reset if it cannot go on without a gap", ({ ask }, feed) =>
    Effect.gen(function* () {
      const iterator = read(yield* ask())
      yield* take(iterator)
      feed.isExpired = true
      const text = yield* take(iterator)
      expect(parse(text ?? "").dispatched).toMatchObject([
        { type: "reset", data: '{"reason":"cursor_expired"}' },
      ])
      expect(yield* take(iterator)).toBeUndefined()
      expect(yield* take(iterator)).toBeUndefined()
    }))

  test("ends within ten seconds after its key is revoked", ({ ask, revoke }) =>
    Effect.gen(function* () {
      const iterator = read(yield* ask())
      yield* take(iterator)
      const texts = yield* asking(iterator)
      yield* revoke
      yield* TestClock.adjust(10_000)
      yield* settled
      expect(texts).toEqual([undefined])
    }))

  test("ends at once when its client has gone, as told by a signal or by return", ({ ask }) =>
    Effect.gen(function* () {
      const client = new AbortController()
      const iterators = [
        read(yield* ask({ signal: () => client.signal })),
        read(yield* ask()),
      ] as const
      for (const iterator of iterators) yield* take(iterator)
      const texts = [yield* asking(iterators[0]), yield* asking(iterators[1])]
      client.abort()
      void iterators[1].return?.()
      yield* settled
      expect(texts).toEqual([[undefined], [undefined]])
      // Their slots are free.
      for (let count = 0; count < 12; count++) {
        expect((yield* ask({ signal: () => client.signal })).status).toBe(200)
        yield* settled
      }
    }))

  test("is refused when all slots of the key are taken", ({ ask }) =>
    Effect.gen(function* () {
      yield* Effect.replicateEffect(ask(), 10)
      expect((yield* ask()).status).toBe(429)
      const poll = yield* ask({ headers: { accept: "*/*" }, query: "wait=1" })
      expect(poll.status).toBe(429)
    }))

  it.effect("that ends because its access is not known has its client come back later", () =>
    Effect.gen(function* () {
      const message = { _tag: "End", reason: "unavailable" } as const
      const listener = {
        next: Effect.succeed(message),
        receive: (receiver: (message: ListenerMessage) => void) => receiver(message),
        close: Effect.void,
      }
      const { body } = makeEventStream({ faults: yield* Faults, run: Effect.runPromise })({
        listener,
        signal: undefined,
        retryMillis: 2000,
        requestId: "r1",
      })
      const texts: Array<string> = []
      yield* Effect.promise(async () => {
        for await (const text of typeof body === "string" ? [] : body) texts.push(text)
      })
      expect(texts).toEqual(["retry: 10000\n\n"])
    }),
  )

  it("brings any data, as clients read it", () =>
    FastCheck.assert(
      FastCheck.asyncProperty(
        FastCheck.array(
          // Events have no whole numbers of so many digits.
          FastCheck.jsonValue({ maxDepth: 2 }).filter(
            (data) => !/\d{16}/.test(JSON.stringify(data)),
          ),
          { minLength: 1, maxLength: 5 },
        ),
        async (all) => {
          const tenure = await createTenure({ stores: memory() })
          await tenure.memberships.createProject("p1")
          for (const data of all) await tenure.events.publish({ projectId: "p1", type: "a", data })
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
          const { dispatched } = parse(value)
          expect(dispatched.map(({ data }) => JSON.parse(data).data)).toEqual(
            all.map((data) => JSON.parse(JSON.stringify(data))),
          )
          await tenure.close()
        },
      ),
      { numRuns: 30 },
    ))
})
