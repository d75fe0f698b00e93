/** Erasing persons. */

import { expect } from "@effect/vitest"
import {
  type EventDraft,
  draftEvent,
  eventData,
  isReplayedResponse,
  makeEvent,
} from "@tenure/core/internal"
import {
  ApiKeyId,
  type Event,
  type EventId,
  FeedStore,
  Outbox,
  Reason,
  UserId,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import {
  change,
  draft,
  event,
  in2027,
  in2028,
  once,
  p1,
  p2,
  u1,
  u2,
} from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import { answered, claims, delivered, deliveriesOf, retry, settle } from "../outbox/steps.ts"
import { addWebhook, expectFailure, idsOf } from "../steps.ts"
import { everything } from "./every-change.ts"
import { prepared } from "./model.ts"

const allOf = { events: 100, bytes: 1_000_000 }

/** Returns fields for an event naming a user, including text that only looks like the id. */
const fieldsAbout = (userId: string, type: string, reason?: string) => ({
  ...event(p1, type),
  data: {
    project_id: p1,
    user_id: userId,
    nested: [{ user_id: userId }, { user_id: Number(userId) }],
    quoted: `"user_id":"${userId}"`,
    longer: { user_id: `${userId}0` },
    reason,
  },
})

const about = (...of: Parameters<typeof fieldsAbout>): Event => makeEvent(fieldsAbout(...of))

const draftAbout = (...of: Parameters<typeof fieldsAbout>): EventDraft =>
  draftEvent(fieldsAbout(...of))

/** A store with changes to two users' memberships, one ended, and a webhook. */
const told = Effect.gen(function* () {
  const store = yield* prepared
  const receiver = yield* addWebhook()
  const reason = Reason("1001 has paid")
  const extension = { ...change(p1), event: draftAbout(u1, "membership.extended", reason), reason }
  yield* store.extend({ ...extension, userId: u1, endDate: in2028 })
  yield* store.extendAll({ ...change(p1), bulk: { endDate: in2028, mode: "set" } })
  yield* store.extend({ ...change(p1), event: draftAbout(u2, "a.b"), userId: u2, endDate: in2028 })
  const erased = {
    ...change(p1),
    origin: { requestId: "r1", keyId: ApiKeyId("k1") },
    at: Date.now(),
    userId: u1,
  }
  return { store, receiver, erased, extension }
})

const dataOf = Effect.fnUntraced(function* (eventId: EventId) {
  return eventData(yield* (yield* Outbox).find(p1, eventId))
})

/** Declares the tests. */
export const erasingTests = (on: StoreTests): void => {
  const { test } = on.testsAfter(told)

  on.describe("a person", () => {
    test("has no history, and nobody else loses any", function* ({ erased, store }) {
      const [before, ofOther] = [
        yield* store.history(p1, everything),
        yield* store.history(p1, { ...everything, userId: u2 }),
      ]
      expect(yield* store.erase(erased)).toMatchObject({ id: erased.event.id })
      yield* expectFailure("MembershipNotFound", store.find(p1, u1))
      expect(yield* store.history(p1, { ...everything, userId: u1 })).toEqual([])
      expect(yield* store.history(p1, { ...everything, userId: u2 })).toEqual(ofOther)
      const [row, ...rest] = yield* store.history(p1, everything)
      expect(row).toMatchObject({
        action: "person_erased",
        userId: undefined,
        subject: undefined,
        origin: erased.origin,
        at: erased.at,
      })
      expect(rest).toEqual(
        before.map((one) =>
          one.userId === u1 ? { ...one, userId: undefined, reason: undefined } : one,
        ),
      )
      expect(yield* store.findProject(p1)).toMatchObject({ memberships: 1 })
    })

    test("is removed from events, also those to be delivered, and nothing else is", function* (world) {
      const { erased, extension, receiver, store } = world
      const outbox = yield* Outbox
      const [own, foreign] = [about(u1, "payment.completed", "kept"), about(u2, "a.b")]
      yield* outbox.publish(own)
      yield* outbox.publish(foreign)
      yield* store.erase(erased)
      const gone = {
        project_id: p1,
        user_id: null,
        nested: [{ user_id: null }, { user_id: null }],
        quoted: '"user_id":"1001"',
        longer: { user_id: "10010" },
      }
      expect(yield* dataOf(extension.event.id)).toEqual({
        ...gone,
        reason: null,
        sequence: expect.any(Number),
      })
      expect(yield* dataOf(own.id)).toEqual({ ...gone, reason: "kept" })
      expect(yield* dataOf(foreign.id)).toEqual(eventData(foreign))
      const claimed = yield* claims()
      const bodies = new Map(claimed.map((one) => [one.event.id, one.event.body]))
      expect(bodies.get(own.id)).not.toContain('"user_id":"1001"}')
      expect(bodies.get(foreign.id)).toBe(foreign.body)
      expect([...bodies.keys()]).toContain(erased.event.id)
      expect(claimed.every((one) => one.webhook.webhookId === receiver.id)).toBe(true)
    })

    test("is removed from events by the whole user id, whatever its characters mean elsewhere", function* (world) {
      const { store } = world
      const outbox = yield* Outbox
      const users = [
        "a.b+c",
        "axb+c",
        "a.bbc",
        "1.5",
        "a.b+",
        'a"b',
        "a\\b",
        "$&",
        "(a|b)*",
        "[^a]",
        "^a{1}$",
        "auth0|1",
        "a?/b",
      ].map(UserId)
      const published = users.map((userId) => ({ userId, event: about(userId, "a.b") }))
      for (const { event: one, userId } of published) {
        const changed = { ...change(p1), event: draftAbout(userId, "a.c") }
        yield* store.grant({ ...changed, userId, endDate: in2028 })
        yield* outbox.publish(one)
      }
      for (const erased of users) {
        yield* store.erase({ ...change(p1), userId: erased })
        const left = new Set(users.slice(users.indexOf(erased) + 1))
        for (const { event: one, userId } of published) {
          const data = Object(yield* dataOf(one.id))
          expect(data.user_id).toBe(left.has(userId) ? userId : null)
        }
      }
    })

    test("is removed with what receivers have responded, before and after the end of a delivery", function* (world) {
      const { erased, receiver, store } = world
      const outbox = yield* Outbox
      const [ended, failing] = [about(u1, "a.b"), about(u1, "payment.failed")]
      const foreign = about(u2, "a.b")
      for (const one of [ended, failing, foreign]) yield* outbox.publish(one)
      for (const one of yield* claims()) {
        yield* settle(one, one.event.id === failing.id ? retry(60_000) : delivered)
      }
      yield* store.erase(erased)
      const all = yield* deliveriesOf(receiver)
      const responsesTo = ({ id }: Event) =>
        all.filter(({ eventId }) => eventId === id).flatMap(({ attempts }) => attempts)
      const silent = { result: { _tag: "Answered", body: "" } }
      expect(responsesTo(ended)).toMatchObject([silent])
      expect(responsesTo(failing)).toMatchObject([silent])
      expect(responsesTo(foreign)).toEqual([answered(200)])
    })

    test("is removed from the feed, which keeps its events in their order", function* (world) {
      const { erased, extension, store } = world
      yield* store.end({ ...change(p1), userId: u1 })
      const foreign = about(u2, "membership.extended", "1002 has paid")
      yield* (yield* Outbox).publish(foreign)
      const feed = yield* FeedStore
      const before = yield* feed.read([p1], "start", allOf)
      yield* store.erase(erased)
      const after = yield* feed.read([p1], "start", allOf)
      expect(idsOf(after.events)).toEqual(idsOf(before.events))
      const found = after.events.find(({ id }) => id === extension.event.id)
      expect(found?.body).toContain('"user_id":null')
      expect(after.events.find(({ id }) => id === foreign.id)?.body).toBe(foreign.body)
      const next = about(u2, "a.b")
      yield* (yield* Outbox).publish(next)
      const later = yield* feed.read([p1], before.cursor, allOf)
      expect(idsOf(later.events)).toEqual([next.id])
    })

    test("is erased after the membership has ended, and if nothing is known", function* (world) {
      const { erased, store } = world
      yield* store.end({ ...change(p1), userId: u1 })
      for (const _ of ["known", "unknown"]) {
        expect(yield* store.erase({ ...erased, event: draft(p1) })).toBeUndefined()
        expect(yield* store.history(p1, { ...everything, userId: u1 })).toEqual([])
      }
    })

    test("keeps what other projects know, and a history of what follows", function* (world) {
      const { erased, store } = world
      yield* store.grant({ ...change(p2), userId: u1, endDate: in2027 })
      yield* store.erase(erased)
      expect(yield* store.history(p2, { ...everything, userId: u1 })).toHaveLength(1)
      yield* store.grant({ ...change(p1), userId: u1, endDate: in2027 })
      expect(yield* store.history(p1, { ...everything, userId: u1 })).toMatchObject([
        { action: "granted", from: undefined },
      ])
    })

    test("is erased once with an idempotency key, whatever was written since", function* (world) {
      const { erased, store } = world
      const keyed = { ...erased, once: once() }
      expect(yield* store.erase(keyed)).toMatchObject({ id: erased.event.id })
      const later = { ...change(p1), at: erased.at + 1, userId: u1, endDate: in2027 }
      yield* store.grant(later)
      const replayed = yield* store.erase({ ...keyed, at: erased.at + 2, event: draft(p1) })
      expect(isReplayedResponse(replayed)).toBe(true)
      expect((yield* store.find(p1, u1)).endDate).toBe(in2027)
      expect(yield* store.history(p1, { ...everything, userId: u1 })).toHaveLength(1)
      const rows = yield* store.history(p1, everything)
      expect(rows.filter(({ action }) => action === "person_erased")).toHaveLength(1)
    })
  })
}
