/** What every `TicketStore` must do. */

import { expect } from "@effect/vitest"
import { ApiKeyId, digest } from "@tenure/core/ApiKey"
import type { Ticket } from "@tenure/core/Ticket"
import { TicketStore } from "@tenure/core/TicketStore"
import * as Effect from "effect/Effect"
import { p1, p2 } from "../support/fixtures.ts"
import type { StoreTests } from "./storeTests.ts"

const bounds = { lifeMillis: 60_000, most: 3 }

/** A ticket of a key. */
const ticketOf = (keyId: string, text: string = crypto.randomUUID()): Ticket => ({
  digest: digest(text),
  keyId: ApiKeyId(keyId),
  keyDigest: digest(`the token of ${keyId}`),
  projects: new Set([p1, p2]),
})

const takingTests = ({ advance, test }: StoreTests): void => {
  test.each([
    ["an API key", {}],
    ["whom else the host identified", { keyDigest: undefined, projects: new Set([p2]) }],
    ["who may use all projects", { projects: "all" }],
  ] as const)("returns a ticket as it was added, of %s", ([_name, fields]) =>
    Effect.gen(function* () {
      const store = yield* TicketStore
      const ticket: Ticket = { ...ticketOf("a key"), ...fields }
      yield* store.add(ticketOf("a key"), bounds)
      yield* store.add(ticket, bounds)
      expect(yield* store.take(digest("another"))).toBeUndefined()
      expect(yield* store.take(ticket.digest)).toEqual(ticket)
    }),
  )

  test("returns a ticket to one of many who take it at the same time", () =>
    Effect.gen(function* () {
      const store = yield* TicketStore
      const ticket = ticketOf("a key")
      yield* store.add(ticket, bounds)
      const takes = Array.from({ length: 20 }, () => store.take(ticket.digest))
      const taken = yield* Effect.all(takes, { concurrency: "unbounded" })
      expect(taken.filter((one) => one !== undefined)).toEqual([ticket])
      expect(yield* store.take(ticket.digest)).toBeUndefined()
    }))

  test("returns a ticket until it expires", () =>
    Effect.gen(function* () {
      const store = yield* TicketStore
      const [early, late] = [ticketOf("a key"), ticketOf("a key")]
      yield* store.add(early, bounds)
      yield* store.add(late, bounds)
      yield* advance(bounds.lifeMillis - 10_000)
      expect(yield* store.take(early.digest)).toEqual(early)
      yield* advance(10_001)
      expect(yield* store.take(late.digest)).toBeUndefined()
    }))
}

const boundTests = ({ advance, test }: StoreTests): void => {
  test("has as many tickets of a key as it may, of those that are added at the same time", () =>
    Effect.gen(function* () {
      const store = yield* TicketStore
      for (const keyId of ["1", "2", "3", "4", "5"]) {
        const adds = Array.from({ length: 20 }, () => store.add(ticketOf(keyId), bounds))
        const exits = yield* Effect.all(adds.map(Effect.exit), { concurrency: "unbounded" })
        expect(exits.filter(({ _tag }) => _tag === "Success")).toHaveLength(bounds.most)
      }
    }))

  test("has as many tickets of a key as it may, of those that live", () =>
    Effect.gen(function* () {
      const store = yield* TicketStore
      const add = (keyId: string) => Effect.as(store.add(ticketOf(keyId), bounds), "added")
      const refused = { _tag: "TicketLimitReached", keyId: "a key" }
      const first = ticketOf("a key")
      yield* store.add(first, bounds)
      yield* add("a key")
      yield* add("a key")
      expect(yield* Effect.flip(add("a key"))).toMatchObject(refused)
      expect(yield* add("another")).toBe("added")
      yield* store.take(first.digest)
      expect(yield* add("a key")).toBe("added")
      expect(yield* Effect.flip(add("a key"))).toMatchObject(refused)
      yield* advance(bounds.lifeMillis + 1)
      expect(yield* add("a key")).toBe("added")
    }))
}

/** Tickets that are added while the clock is ahead. */
const clockTests = ({ advance, test }: StoreTests): void => {
  const day = 86_400_000

  const addedAhead = Effect.fnUntraced(function* () {
    const store = yield* TicketStore
    const tickets = Array.from({ length: bounds.most }, () => ticketOf("a key"))
    yield* advance(day)
    yield* Effect.forEach(tickets, (ticket) => store.add(ticket, bounds))
    yield* advance(-day)
    return { store, tickets }
  })

  test("lets a ticket that was added while the clock was ahead live no longer than others", () =>
    Effect.gen(function* () {
      const { store, tickets } = yield* addedAhead()
      yield* advance(bounds.lifeMillis + 1)
      for (const { digest: one } of tickets) expect(yield* store.take(one)).toBeUndefined()
    }))

  test("counts tickets that were added while the clock was ahead no longer than others", () =>
    Effect.gen(function* () {
      const { store } = yield* addedAhead()
      yield* advance(bounds.lifeMillis + 1)
      const ticket = ticketOf("a key")
      yield* store.add(ticket, bounds)
      expect(yield* store.take(ticket.digest)).toEqual(ticket)
    }))
}

/** Declares the tests. */
export const ticketStoreSuite = (on: StoreTests): void => {
  takingTests(on)
  boundTests(on)
  clockTests(on)
}
