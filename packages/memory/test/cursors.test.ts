import { expect, it } from "@effect/vitest"
import { type FeedPage, FeedStore, MembershipStore, Outbox } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import { encryptBlock, makeCursorCipher } from "../src/cursors.ts"
import { memory } from "../src/index.ts"

const { event, context, p1, p2 } = Fixture
const rounds = 200

/** Counts the cursors greater than the one before, as text. */
const growths = (cursors: ReadonlyArray<string>): number =>
  cursors.filter((cursor, index) => index > 0 && cursor > String(cursors[index - 1])).length

it.effect("a cursor of the feed does not tell what happens in other projects", () =>
  Effect.gen(function* () {
    const memberships = yield* MembershipStore
    const feed = yield* FeedStore
    const outbox = yield* Outbox
    for (const id of [p1, p2]) yield* memberships.createProject(id, context)
    const read = feed.read([p1], "now", { events: 10, bytes: 1_000_000 })
    const quiet: Array<FeedPage> = []
    const busy: Array<FeedPage> = []
    for (let round = 0; round < rounds; round++) {
      quiet.push(yield* read)
      busy.push(yield* read)
      yield* outbox.publish(event(p2))
    }
    for (const pages of [quiet, busy]) {
      const cursors = pages.map(({ cursor }) => cursor)
      expect(new Set(cursors).size).toBe(rounds)
      // As often as by chance.
      expect(growths(cursors)).toBeGreaterThan(0.3 * rounds)
      expect(growths(cursors)).toBeLessThan(0.7 * rounds)
    }
    // Nor do cursors for a project's own events, with others in between.
    const size = { events: rounds, bytes: 1_000_000 }
    for (let round = 0; round < rounds; round++) yield* outbox.publish(event(p1))
    const { events } = yield* feed.read([p1], "start", size)
    const own = events.map(({ cursor }) => cursor)
    expect(growths(own)).toBeLessThan(0.7 * rounds)
    // They stay the same, and are places.
    expect((yield* feed.read([p1], "start", size)).events).toEqual(events)
    const [first] = own
    if (first === undefined) return expect.fail("no event")
    expect((yield* feed.read([p1], first, size)).events).toEqual(events.slice(1))
  }).pipe(Effect.provide(memory())),
)

it("a cursor is read as the place that was printed, and only by its own history", () => {
  const cursors = makeCursorCipher(crypto)
  for (const place of [0, 1, 2, 1000, 2 ** 32 - 1, 2 ** 32, 2 ** 40 + 7]) {
    expect(cursors.read(cursors.print(place))).toBe(place)
    expect(makeCursorCipher(crypto).read(cursors.print(place))).toBeUndefined()
  }
})

it("places are encrypted by XTEA", () => {
  const key = Uint32Array.of(0x00010203, 0x04050607, 0x08090a0b, 0x0c0d0e0f)
  expect(encryptBlock(key, [0x41424344, 0x45464748])).toEqual([0x497df3d0, 0x72612cb5])
  expect(encryptBlock(key, [0x41414141, 0x41414141])).toEqual([0xe78f2d13, 0x744341d8])
})
