import { memory } from "@tenure/memory"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { Handler } from "../../src/http/handler.ts"
import { closeFrameOf, parseFrame } from "../../src/http/realtime.ts"
import { emptyBody } from "../../src/http/request.ts"
import { ApiKeys } from "../../src/keys/api-keys.ts"
import { ApiKeyStore } from "../../src/keys/store.ts"
import { Memberships } from "../../src/memberships/memberships.ts"
import { tenureLayer } from "../../src/tenure.ts"
import { Events } from "../../src/webhooks/published-events.ts"
import { test } from "../support/test.ts"

const text = (frame: object): string => JSON.stringify(frame)
const subscribe = text({ type: "subscribe", project: "p1" })
const pong = text({ type: "pong" })

/** Returns services with a project, a key, and a key store that can fail. `random` makes their random numbers. */
const realtimeWith = Effect.fnUntraced(function* (random?: () => number) {
  const keyStore = { isAway: false }
  const away = Layer.effect(
    ApiKeyStore,
    Effect.map(ApiKeyStore, (store) => ({
      ...store,
      find: (digest) =>
        Effect.suspend(() =>
          keyStore.isAway
            ? Effect.fail(new StoreUnavailable({ cause: "away" }))
            : store.find(digest),
        ),
    })),
  )
  const layer = Layer.provide(tenureLayer({ expiry: false }), Layer.provideMerge(away, memory()))
  const numbers =
    random === undefined
      ? Layer.empty
      : Layer.succeed(Random.Random, { nextDoubleUnsafe: random, nextIntUnsafe: random })
  const services = yield* Layer.build(Layer.provide(layer, numbers))
  const memberships = Context.get(services, Memberships)
  const apiKeys = Context.get(services, ApiKeys)
  yield* memberships.createProject("p1")
  const { id, token } = yield* apiKeys.issue({ projects: ["p1"] })
  const { connect } = Context.get(services, Handler)

  /** Opens a connection with a socket that records its input unless `write` is given. */
  const open = Effect.fnUntraced(function* (write?: () => Promise<void>) {
    const departure = new AbortController()
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
      body: emptyBody,
      remoteAddress: "192.0.2.1",
      signal: () => departure.signal,
    })
    const frames: Array<Record<string, unknown>> = []
    const codes: Array<number> = []
    const receiver = (session ?? expect.fail("the connection was refused")).start({
      send: write ?? (async (sent) => void frames.push(JSON.parse(sent))),
      close: (code) => void codes.push(code),
    })
    return { codes, departure, frames, receive: (sent: string) => receiver.receive(sent) }
  })

  return {
    apiKeys,
    events: Context.get(services, Events),
    keyId: id,
    keyStore,
    memberships,
    open,
    token,
  }
})

/** Lets time pass in small steps, so that fibers waiting in between go on. */
const pass = (seconds: number) => Effect.replicateEffect(TestClock.adjust("1 second"), seconds)

describe("a connection", () => {
  test("that does not subscribe is closed after ten seconds", function* () {
    const { open } = yield* realtimeWith()
    const { codes, frames, receive } = yield* open()
    yield* pass(9)
    receive(pong)
    expect(codes).toEqual([])
    yield* pass(1)
    expect(codes).toEqual([4408])
    expect(frames).toMatchObject([{ type: "error", error_code: "REQUEST_TIMEOUT" }])
  })

  test("is pinged, and lives as long as it answers", function* () {
    const { open } = yield* realtimeWith()
    const { codes, frames, receive } = yield* open()
    receive(subscribe)
    for (let count = 1; count <= 10; count++) {
      yield* pass(15)
      expect(frames.filter(({ type }) => type === "ping")).toHaveLength(count)
      receive(pong)
    }
    expect(codes).toEqual([])
    yield* pass(30)
    expect(codes).toEqual([4408])
  })

  test("ends within ten seconds after its key is revoked", function* () {
    const { apiKeys, keyId, open } = yield* realtimeWith()
    const { codes, frames, receive } = yield* open()
    receive(subscribe)
    yield* pass(5)
    yield* apiKeys.revoke(keyId)
    yield* pass(10)
    expect(codes).toEqual([4401])
    expect(frames.at(-1)).toMatchObject({ type: "error", error_code: "UNAUTHORIZED" })
  })

  test("ends within ten seconds after nobody can say that its key is valid", function* () {
    const { apiKeys, keyStore, open, token } = yield* realtimeWith()
    const { codes, frames, receive } = yield* open()
    receive(subscribe)
    yield* pass(8)
    keyStore.isAway = true
    yield* pass(2)
    expect(codes).toEqual([])
    // A cached key serves requests until it leaves the cache, and no longer.
    expect(yield* apiKeys.authenticate(token)).toBeDefined()
    yield* pass(8)
    expect(codes).toEqual([4503])
    expect(frames.at(-1)).toMatchObject({ type: "error", error_code: "SERVICE_UNAVAILABLE" })
    expect(yield* Effect.flip(apiKeys.authenticate(token))).toBeInstanceOf(StoreUnavailable)
    keyStore.isAway = false
    const next = yield* open()
    next.receive(subscribe)
    yield* pass(12)
    expect(next).toMatchObject({ codes: [], frames: [{ type: "cursor" }] })
  })

  test("ends with its project", function* () {
    const { memberships, open } = yield* realtimeWith()
    const { codes, frames, receive } = yield* open()
    receive(subscribe)
    yield* pass(1)
    yield* memberships.deleteProject("p1")
    yield* pass(10)
    expect(codes).toEqual([4404])
    expect(frames.at(-1)).toMatchObject({ error_code: "PROJECT_NOT_FOUND" })
  })

  test("whose client reads nothing is cut off, and nothing more is read for it", function* () {
    const { events, open } = yield* realtimeWith()
    let sent = 0
    const { codes, receive } = yield* open(() => {
      sent += 1
      return new Promise(() => {})
    })
    receive(subscribe)
    for (let count = 0; count < 5; count++) {
      yield* events.publish({ projectId: "p1", type: "a", data: {} })
      yield* pass(1)
    }
    expect(sent).toBe(1)
    yield* pass(30)
    expect(codes).toEqual([4408])
  })

  test("is to come again after ten minutes, a fifth more or less", function* () {
    const { open } = yield* realtimeWith()
    const { codes, receive } = yield* open()
    receive(subscribe)
    const answer = Effect.andThen(
      pass(15),
      Effect.sync(() => receive(pong)),
    )
    yield* Effect.replicateEffect(answer, 32)
    expect(codes).toEqual([])
    yield* Effect.replicateEffect(answer, 18)
    expect(codes).toEqual([1001])
  })

  test("that ends while its listener is opened leaves no slot taken", function* () {
    // A listener's lifetime is random, so it draws a random number after taking its slot.
    let beforeRandom = (): void => {}
    const { open } = yield* realtimeWith(() => {
      beforeRandom()
      return 0.5
    })
    for (let count = 0; count < 20; count++) {
      const { departure, receive } = yield* open()
      beforeRandom = () => departure.abort()
      receive(subscribe)
      yield* pass(1)
    }
    beforeRandom = () => {}
    const { codes, frames, receive } = yield* open()
    receive(subscribe)
    yield* pass(1)
    expect({ codes, frames }).toMatchObject({ codes: [], frames: [{ type: "cursor" }] })
  })
})

describe("a frame of a client", () => {
  it("is one of the protocol, or an error that names a status", () => {
    const jsonLike = fc.json().map((json) => json.replace(/^\{/, '{"type":"subscribe",'))
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json(), jsonLike), (given) => {
        const parsed = parseFrame(given)
        if (Result.isFailure(parsed)) {
          const { code, frame, reason } = closeFrameOf(parsed.failure)
          expect([4400, 4413, 4422]).toContain(code)
          expect(JSON.parse(frame ?? "")).toMatchObject({ type: "error", error_code: reason })
          // A close frame has no more bytes.
          expect(reason.length).toBeLessThan(124)
        } else {
          expect(["Pong", "Subscribe"]).toContain(parsed.success._tag)
        }
      }),
      { numRuns: 1000 },
    )
  })

  it("is read as it was written, if it is a subscription", () => {
    const subscription = fc.record(
      { project: fc.string(), types: fc.array(fc.string()), after: fc.string() },
      { requiredKeys: ["project"] },
    )
    fc.assert(
      fc.property(subscription, (given) => {
        const parsed = parseFrame(text({ type: "subscribe", ...given }))
        expect(parsed).toMatchObject({ success: { _tag: "Subscribe", subscription: given } })
      }),
    )
  })
})
