/** What every `MembershipStore` has to do. */

import { describe, expect } from "@effect/vitest"
import { ApiKeyId } from "@tenure/core/ApiKey"
import { UserId } from "@tenure/core/Membership"
import { MembershipStore } from "@tenure/core/MembershipStore"
import { Outbox } from "@tenure/core/Outbox"
import { ProjectId } from "@tenure/core/Project"
import { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import * as Fixture from "./fixtures.ts"
import { membershipModelSuite } from "./membershipModel.ts"
import { type StoreHarness, testOn } from "./StoreHarness.ts"

const { change, in2027, in2028, in2029, p1, p2, u1, u2, u3 } = Fixture

/** A store with two projects, of which the first has two members. */
const prepared = Effect.gen(function* () {
  const store = yield* MembershipStore
  yield* store.createProject(p1)
  yield* store.createProject(p2)
  yield* store.grant({ ...change(p1), userId: u1, endDate: in2027 })
  yield* store.grant({ ...change(p1), userId: u2, endDate: in2029 })
  return store
})

const endDateOf = Effect.fnUntraced(function* (userId: UserId, projectId = p1) {
  const store = yield* MembershipStore
  return (yield* store.find(projectId, userId)).endDate
})

/** Gives the types of the events that are claimable. */
const claimedTypes = Effect.gen(function* () {
  const outbox = yield* Outbox
  const { claims } = yield* outbox.claim({ limit: 100, perWebhook: 100, leaseMillis: 60_000 })
  return claims.map(({ event }) => String(JSON.parse(event.body).type))
})

/** Declares the suite. */
export const membershipStoreSuite = (name: string, harness: StoreHarness): void => {
  const test = testOn(harness)

  describe(`${name}: MembershipStore`, () => {
    describe("projects", () => {
      test("are created once: creating one again leaves its members alone", () =>
        Effect.gen(function* () {
          const store = yield* prepared
          yield* store.createProject(p1)
          expect(yield* endDateOf(u1)).toBe(in2027)
        }))

      test("may have any name that is an id", () =>
        Effect.gen(function* () {
          const store = yield* MembershipStore
          for (const id of ["__proto__", "constructor", "a/b?c#d", "日本", "'; --", "%00"]) {
            const projectId = ProjectId(id)
            const missing = yield* Effect.flip(store.find(projectId, u1))
            expect(missing._tag).toBe("MembershipNotFound")
            yield* store.createProject(projectId)
            yield* store.grant({ ...change(projectId), userId: u1, endDate: in2027 })
            expect(yield* endDateOf(u1, projectId)).toBe(in2027)
          }
        }))
    })

    describe("grant", () => {
      test("fails for a project that does not exist", () =>
        Effect.gen(function* () {
          const store = yield* MembershipStore
          const grant = { ...change(p1), userId: u1, endDate: in2027 }
          expect((yield* Effect.flip(store.grant(grant)))._tag).toBe("ProjectNotFound")
        }))

      test("sets the end date of a membership that exists", () =>
        Effect.gen(function* () {
          const store = yield* prepared
          yield* store.grant({ ...change(p1), userId: u1, endDate: in2028 })
          expect(yield* endDateOf(u1)).toBe(in2028)
        }))

      test("keeps end dates to the millisecond from year 0000 to 9999", () =>
        Effect.gen(function* () {
          const store = yield* prepared
          for (const text of ["0000-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"]) {
            const endDate = Fixture.date(text)
            yield* store.grant({ ...change(p1), userId: u1, endDate })
            expect(yield* endDateOf(u1)).toBe(endDate)
          }
        }))

      test("takes user ids of 64 digits, and tells 7 from 07", () =>
        Effect.gen(function* () {
          const store = yield* prepared
          const long = UserId("9".repeat(64))
          yield* store.grant({ ...change(p1), userId: long, endDate: in2028 })
          yield* store.grant({ ...change(p1), userId: UserId("7"), endDate: in2027 })
          yield* store.grant({ ...change(p1), userId: UserId("07"), endDate: in2029 })
          expect(yield* endDateOf(long)).toBe(in2028)
          expect(yield* endDateOf(UserId("7"))).toBe(in2027)
          expect(yield* endDateOf(UserId("07"))).toBe(in2029)
        }))
    })

    describe("extend", () => {
      test("sets the end date, to a later or an earlier one", () =>
        Effect.gen(function* () {
          const store = yield* prepared
          yield* store.extend({ ...change(p1), userId: u1, endDate: in2029 })
          yield* store.extend({ ...change(p1), userId: u2, endDate: in2028 })
          expect(yield* endDateOf(u1)).toBe(in2029)
          expect(yield* endDateOf(u2)).toBe(in2028)
        }))

      test("can be repeated", () =>
        Effect.gen(function* () {
          const store = yield* prepared
          const extension = { ...change(p1), userId: u1, endDate: in2028 }
          yield* store.extend(extension)
          yield* store.extend({ ...extension, event: Fixture.event(p1) })
          expect(yield* endDateOf(u1)).toBe(in2028)
        }))

      test("fails for a user without a membership, in this project or any", () =>
        Effect.gen(function* () {
          const store = yield* prepared
          const unknown = [
            { ...change(p1), userId: u3 },
            { ...change(p2), userId: u1 },
            { ...change(ProjectId("nowhere")), userId: u1 },
          ]
          for (const one of unknown) {
            const error = yield* Effect.flip(store.extend({ ...one, endDate: in2028 }))
            expect(error._tag).toBe("MembershipNotFound")
          }
        }))
    })

    describe("extendAll", () => {
      test("sets all memberships of the project, those that end later too, and counts them", () =>
        Effect.gen(function* () {
          const store = yield* prepared
          yield* store.grant({ ...change(p2), userId: u1, endDate: in2027 })
          const total = yield* store.extendAll({ ...change(p1), endDate: in2028, mode: "set" })
          expect(total).toBe(2)
          expect(yield* endDateOf(u1)).toBe(in2028)
          expect(yield* endDateOf(u2)).toBe(in2028)
          expect(yield* endDateOf(u1, p2)).toBe(in2027)
        }))

      test("with neverShorten leaves memberships that end later, and does not count them", () =>
        Effect.gen(function* () {
          const store = yield* prepared
          const bulk = { ...change(p1), endDate: in2028, mode: "neverShorten" } as const
          expect(yield* store.extendAll(bulk)).toBe(1)
          expect(yield* endDateOf(u1)).toBe(in2028)
          expect(yield* endDateOf(u2)).toBe(in2029)
        }))

      test("counts 0 in a project without members", () =>
        Effect.gen(function* () {
          const store = yield* prepared
          for (const mode of ["set", "neverShorten"] as const) {
            expect(yield* store.extendAll({ ...change(p2), endDate: in2028, mode })).toBe(0)
          }
        }))

      test("fails for a project that does not exist", () =>
        Effect.gen(function* () {
          const store = yield* prepared
          const bulk = { ...change(ProjectId("nowhere")), endDate: in2028, mode: "set" } as const
          expect((yield* Effect.flip(store.extendAll(bulk)))._tag).toBe("ProjectNotFound")
        }))

      test("gives way to what comes after it: an extension, a grant", () =>
        Effect.gen(function* () {
          const store = yield* prepared
          yield* store.extendAll({ ...change(p1), endDate: in2028, mode: "set" })
          yield* store.extend({ ...change(p1), userId: u1, endDate: in2027 })
          yield* store.grant({ ...change(p1), userId: u3, endDate: in2029 })
          expect(yield* endDateOf(u1)).toBe(in2027)
          expect(yield* endDateOf(u2)).toBe(in2028)
          expect(yield* endDateOf(u3)).toBe(in2029)
        }))

      test("does not reach a member who left before it and comes back after it", () =>
        Effect.gen(function* () {
          const store = yield* prepared
          yield* store.end({ ...change(p1), userId: u1 })
          expect(yield* store.extendAll({ ...change(p1), endDate: in2029, mode: "set" })).toBe(1)
          yield* store.grant({ ...change(p1), userId: u1, endDate: in2027 })
          expect(yield* endDateOf(u1)).toBe(in2027)
        }))

      test("wins over all that was answered before it, however much goes on at once", () =>
        Effect.gen(function* () {
          const store = yield* prepared
          const extensions = Array.from({ length: 50 }, (_, index) =>
            store.extend({ ...change(p1), userId: index % 2 === 0 ? u1 : u2, endDate: in2027 }),
          )
          yield* Effect.all(extensions, { concurrency: "unbounded" })
          yield* store.extendAll({ ...change(p1), endDate: in2029, mode: "set" })
          expect(yield* endDateOf(u1)).toBe(in2029)
          expect(yield* endDateOf(u2)).toBe(in2029)
        }))
    })

    describe("end", () => {
      test("removes the membership", () =>
        Effect.gen(function* () {
          const store = yield* prepared
          yield* store.end({ ...change(p1), userId: u1 })
          expect((yield* Effect.flip(store.find(p1, u1)))._tag).toBe("MembershipNotFound")
          expect(yield* store.extendAll({ ...change(p1), endDate: in2029, mode: "set" })).toBe(1)
        }))

      test("fails for a user without a membership", () =>
        Effect.gen(function* () {
          const store = yield* prepared
          const error = yield* Effect.flip(store.end({ ...change(p1), userId: u3 }))
          expect(error._tag).toBe("MembershipNotFound")
        }))
    })

    describe("list", () => {
      test("goes by user id, page by page", () =>
        Effect.gen(function* () {
          const store = yield* prepared
          yield* store.grant({ ...change(p1), userId: UserId("9"), endDate: in2028 })
          const page = (after: UserId | undefined) => store.list(p1, { after, limit: 2 })
          const first = yield* page(undefined)
          expect(first).toEqual([
            { projectId: p1, userId: u1, endDate: in2027 },
            { projectId: p1, userId: u2, endDate: in2029 },
          ])
          const second = yield* page(u2)
          expect(second.map(({ userId }) => userId)).toEqual(["9"])
          expect(yield* page(UserId("9"))).toEqual([])
        }))

      test("shows the end date that a bulk extension has set", () =>
        Effect.gen(function* () {
          const store = yield* prepared
          yield* store.extendAll({ ...change(p1), endDate: in2028, mode: "set" })
          const all = yield* store.list(p1, { after: undefined, limit: 10 })
          expect(all.map(({ endDate }) => endDate)).toEqual([in2028, in2028])
        }))

      test("fails for a project that does not exist", () =>
        Effect.gen(function* () {
          const store = yield* MembershipStore
          const error = yield* Effect.flip(store.list(p1, { after: undefined, limit: 1 }))
          expect(error._tag).toBe("ProjectNotFound")
        }))
    })

    describe("history", () => {
      test("tells who changed what, in which request, from and to which date, newest first", () =>
        Effect.gen(function* () {
          const store = yield* prepared
          const origin = { requestId: crypto.randomUUID(), keyId: ApiKeyId(crypto.randomUUID()) }
          yield* store.extend({ ...change(p1), userId: u1, endDate: in2028, origin, at: 5 })
          yield* store.extendAll({ ...change(p1), endDate: in2029, mode: "set", at: 6 })
          yield* store.end({ ...change(p1), userId: u1, at: 7 })
          const rows = yield* store.history(p1, { userId: undefined, limit: 3 })
          const host = { requestId: undefined, keyId: undefined }
          expect(rows).toEqual([
            {
              projectId: p1,
              userId: u1,
              action: "ended",
              origin: host,
              from: in2029,
              to: undefined,
              at: 7,
            },
            {
              projectId: p1,
              userId: undefined,
              action: "bulk_extended",
              origin: host,
              from: undefined,
              to: in2029,
              at: 6,
            },
            {
              projectId: p1,
              userId: u1,
              action: "extended",
              origin,
              from: in2027,
              to: in2028,
              at: 5,
            },
          ])
        }))

      test("can be had of one user", () =>
        Effect.gen(function* () {
          const store = yield* prepared
          yield* store.extend({ ...change(p1), userId: u1, endDate: in2028 })
          const rows = yield* store.history(p1, { userId: u1, limit: 10 })
          expect(rows.map(({ action, from }) => [action, from])).toEqual([
            ["extended", in2027],
            ["granted", undefined],
          ])
        }))

      test("fails for a project that does not exist", () =>
        Effect.gen(function* () {
          const store = yield* MembershipStore
          const error = yield* Effect.flip(store.history(p1, { userId: undefined, limit: 1 }))
          expect(error._tag).toBe("ProjectNotFound")
        }))
    })

    describe("one step", () => {
      test("every change brings its event to every webhook of its project, and to no other's", () =>
        Effect.gen(function* () {
          const store = yield* prepared
          const webhooks = yield* WebhookStore
          for (const projectId of [p1, p1, p2]) yield* webhooks.add(Fixture.webhook(projectId), 50)
          yield* store.grant({ ...change(p1, "granted"), userId: u3, endDate: in2027 })
          yield* store.extend({ ...change(p1, "extended"), userId: u3, endDate: in2028 })
          yield* store.extendAll({ ...change(p1, "bulk"), endDate: in2029, mode: "set" })
          yield* store.end({ ...change(p1, "ended"), userId: u3 })
          const twice = ["granted", "extended", "bulk", "ended"].flatMap((type) => [type, type])
          expect((yield* claimedTypes).toSorted()).toEqual(twice.toSorted())
        }))

      test("a change that fails leaves no event and no audit row", () =>
        Effect.gen(function* () {
          const store = yield* prepared
          yield* (yield* WebhookStore).add(Fixture.webhook(p1), 50)
          const before = yield* store.history(p1, { userId: undefined, limit: 100 })
          yield* Effect.flip(store.extend({ ...change(p1), userId: u3, endDate: in2028 }))
          yield* Effect.flip(store.end({ ...change(p1), userId: u3 }))
          expect(yield* claimedTypes).toEqual([])
          expect(yield* store.history(p1, { userId: undefined, limit: 100 })).toEqual(before)
        }))
    })

    membershipModelSuite(harness)
  })
}
