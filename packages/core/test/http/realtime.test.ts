import { expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import { TestClock } from "effect/testing"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { Handler } from "../../src/http/handler.ts"
import { ApiKeys } from "../../src/keys/api-keys.ts"
import { ApiKeyStore } from "../../src/keys/store.ts"
import { Memberships } from "../../src/memberships/memberships.ts"
import { type Services, tenureLayer } from "../../src/tenure.ts"
import { Events } from "../../src/webhooks/published-events.ts"

const services = Layer.provide(tenureLayer({ expiry: false }), memory())

const onTenure = <A, E>(name: string, test: Effect.Effect<A, E, Services>) =>
  it.effect(name, () => Effect.provide(test, services))

/** Opens a connection of a key. Its socket records what it sends, or is stuck. */
const connected = Effect.fnUntraced(function* (
  token: string,
  send: (text: string) => Promise<void>,
) {
  const departure = new AbortController()
  const { connect } = yield* Handler
  const { session } = yield* connect({
    method: "GET",
    path: "/v2/realtime",
    headers: {
      authorization: `Bearer ${token}`,
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
      "sec-websocket-version": "13",
      "sec-websocket-protocol": "other, tenure.v1",
    },
    body: { _tag: "Bytes", bytes: new Uint8Array(0) },
    remoteAddress: "192.0.2.1",
    signal: () => departure.signal,
  })
  const codes: Array<number> = []
  const receiver = (session ?? expect.fail("the connection was refused")).start({
    send,
    close: (code) => void codes.push(code),
  })
  return { codes, departure, receive: (text: string) => receiver.receive(text) }
})

/** The same with a new key. */
const opened = Effect.fnUntraced(function* (send: (text: string) => Promise<void>) {
  yield* (yield* Memberships).createProject("p1")
  const { id, token } = yield* (yield* ApiKeys).issue({ projects: ["p1"] })
  return { id, ...(yield* connected(token, send)) }
})

const recording = () => {
  const frames: Array<Record<string, unknown>> = []
  return { frames, send: async (text: string) => void frames.push(JSON.parse(text)) }
}

const subscribe = JSON.stringify({ type: "subscribe", project: "p1" })

/** Services whose random numbers are made by a function. */
const withRandom = (next: () => number) =>
  Layer.provide(
    services,
    Layer.succeed(Random.Random, { nextDoubleUnsafe: next, nextIntUnsafe: next }),
  )

/** Lets time pass in small steps, so that whoever waits in between goes on. */
const pass = (seconds: number) =>
  Effect.forEach(Array.from({ length: seconds }), () => TestClock.adjust("1 second"), {
    discard: true,
  })

onTenure(
  "a connection that does not subscribe is closed after ten seconds",
  Effect.gen(function* () {
    const { frames, send } = recording()
    const { codes, receive } = yield* opened(send)
    yield* pass(9)
    receive(JSON.stringify({ type: "pong" }))
    expect(codes).toEqual([])
    yield* pass(1)
    expect(codes).toEqual([4408])
    expect(frames).toMatchObject([{ type: "error", error_code: "REQUEST_TIMEOUT" }])
  }),
)

onTenure(
  "a connection is pinged, and lives as long as it answers",
  Effect.gen(function* () {
    const { frames, send } = recording()
    const { codes, receive } = yield* opened(send)
    receive(subscribe)
    const pings = () => frames.filter(({ type }) => type === "ping").length
    for (let count = 1; count <= 10; count++) {
      yield* pass(15)
      expect(pings()).toBe(count)
      receive(JSON.stringify({ type: "pong" }))
    }
    expect(codes).toEqual([])
    yield* pass(30)
    expect(codes).toEqual([4408])
  }),
)

onTenure(
  "a connection ends within ten seconds after its key is revoked",
  Effect.gen(function* () {
    const { frames, send } = recording()
    const { codes, id, receive } = yield* opened(send)
    receive(subscribe)
    yield* pass(5)
    yield* (yield* ApiKeys).revoke(id)
    yield* pass(10)
    expect(codes).toEqual([4401])
    expect(frames.at(-1)).toMatchObject({ type: "error", error_code: "UNAUTHORIZED" })
  }),
)

let isAway = false
it.effect("a connection ends within ten seconds after nobody can say that its key is valid", () =>
  Effect.gen(function* () {
    yield* (yield* Memberships).createProject("p1")
    const apiKeys = yield* ApiKeys
    const { token } = yield* apiKeys.issue({ projects: ["p1"] })
    const { frames, send } = recording()
    const { codes, receive } = yield* connected(token, send)
    receive(subscribe)
    yield* pass(8)
    isAway = true
    yield* pass(2)
    expect(codes).toEqual([])
    // What is known of a key serves requests for as long as the cache keeps it, and no longer.
    expect(yield* apiKeys.authenticate(token)).toBeDefined()
    yield* pass(8)
    expect(codes).toEqual([4503])
    expect(frames.at(-1)).toMatchObject({ type: "error", error_code: "SERVICE_UNAVAILABLE" })
    expect(yield* Effect.flip(apiKeys.authenticate(token))).toBeInstanceOf(StoreUnavailable)
    isAway = false
    const again = recording()
    const next = yield* connected(token, again.send)
    next.receive(subscribe)
    yield* pass(12)
    expect(next.codes).toEqual([])
    expect(again.frames).toMatchObject([{ type: "cursor" }])
  }).pipe(
    Effect.provide(
      Layer.provide(
        tenureLayer({ expiry: false }),
        Layer.provideMerge(
          Layer.effect(
            ApiKeyStore,
            Effect.map(ApiKeyStore, (store) => ({
              ...store,
              find: (digest) =>
                Effect.suspend(() =>
                  isAway
                    ? Effect.fail(new StoreUnavailable({ cause: "away" }))
                    : store.find(digest),
                ),
            })),
          ),
          memory(),
        ),
      ),
    ),
  ),
)

onTenure(
  "a connection ends with its project",
  Effect.gen(function* () {
    const { frames, send } = recording()
    const { codes, receive } = yield* opened(send)
    receive(subscribe)
    yield* pass(1)
    yield* (yield* Memberships).deleteProject("p1")
    yield* pass(10)
    expect(codes).toEqual([4404])
    expect(frames.at(-1)).toMatchObject({ error_code: "PROJECT_NOT_FOUND" })
  }),
)

onTenure(
  "a client that reads nothing is cut off, and nothing more is read for it",
  Effect.gen(function* () {
    let sent = 0
    const { codes, receive } = yield* opened(() => {
      sent += 1
      return new Promise(() => {})
    })
    receive(subscribe)
    const { publish } = yield* Events
    for (let count = 0; count < 5; count++) {
      yield* publish({ projectId: "p1", type: "a", data: {} })
      yield* pass(1)
    }
    expect(sent).toBe(1)
    yield* pass(30)
    expect(codes).toEqual([4408])
  }),
)

onTenure(
  "a connection is to come again after ten minutes, a fifth more or less",
  Effect.gen(function* () {
    const { send } = recording()
    const { codes, receive } = yield* opened(send)
    receive(subscribe)
    for (let count = 0; count < 32; count++) {
      yield* pass(15)
      receive(JSON.stringify({ type: "pong" }))
    }
    expect(codes).toEqual([])
    for (let count = 0; count < 18; count++) {
      yield* pass(15)
      receive(JSON.stringify({ type: "pong" }))
    }
    expect(codes).toEqual([1001])
  }),
)

// The life of a listener is random, so a random number is drawn after it has taken its slot.
let beforeRandom = (): void => {}
it.effect("a connection that ends while its listener is opened leaves no slot taken", () =>
  Effect.gen(function* () {
    yield* (yield* Memberships).createProject("p1")
    const { token } = yield* (yield* ApiKeys).issue({ projects: ["p1"] })
    for (let count = 0; count < 20; count++) {
      const { send } = recording()
      const { departure, receive } = yield* connected(token, send)
      beforeRandom = () => departure.abort()
      receive(subscribe)
      yield* pass(1)
    }
    beforeRandom = () => {}
    const { frames, send } = recording()
    const { codes, receive } = yield* connected(token, send)
    receive(subscribe)
    yield* pass(1)
    expect(codes).toEqual([])
    expect(frames).toMatchObject([{ type: "cursor" }])
  }).pipe(
    Effect.provide(
      withRandom(() => {
        beforeRandom()
        return 0.5
      }),
    ),
  ),
)
