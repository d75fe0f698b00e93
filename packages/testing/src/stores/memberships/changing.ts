/** Changes of one membership. */

import { expect } from "@effect/vitest"
import { UserId } from "@tenure/core/Membership"
import { MembershipStore } from "@tenure/core/MembershipStore"
import { ProjectId } from "@tenure/core/Project"
import * as Effect from "effect/Effect"
import {
  change,
  date,
  draft,
  in2027,
  in2028,
  in2029,
  p1,
  p2,
  u1,
  u2,
  u3,
  occasion,
} from "../../support/fixtures.ts"
import type { StoreTests } from "../storeTests.ts"
import { endDateOf, nowhere, prepared } from "./steps.ts"

/** Declares the tests. */
export const changingTests = (on: StoreTests): void => {
  projectTests(on)
  grantTests(on)
  extendTests(on)
  endTests(on)
}

const projectTests = ({ describe, test }: StoreTests): void => {
  describe("projects", () => {
    test("keep their members and their history when they are created again", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        yield* store.createProject(p1, occasion)
        expect(yield* endDateOf(u1)).toBe(in2027)
        expect(yield* store.history(p1, { userId: u1, limit: 10 })).toHaveLength(1)
      }))

    test("can have any valid id as their name, and names that look alike", () =>
      Effect.gen(function* () {
        const store = yield* MembershipStore
        const alike = ["acme", "ACME", "caf\u00e9", "cafe\u0301", "cafe"]
        for (const id of ["__proto__", "a/b?c#d", "日本", "'; --", "%00", ...alike]) {
          const projectId = ProjectId(id)
          const missing = yield* Effect.flip(store.find(projectId, u1))
          expect(missing._tag).toBe("MembershipNotFound")
          yield* store.createProject(projectId, occasion)
          yield* store.grant({ ...change(projectId), userId: u1, endDate: in2027 })
          expect(yield* endDateOf(u1, projectId)).toBe(in2027)
        }
      }))
  })
}

const grantTests = ({ describe, test }: StoreTests): void => {
  describe("grant", () => {
    test("fails if the project does not exist", () =>
      Effect.gen(function* () {
        const store = yield* MembershipStore
        const grant = { ...change(p1), userId: u1, endDate: in2027 }
        expect((yield* Effect.flip(store.grant(grant)))._tag).toBe("ProjectNotFound")
      }))

    test("sets the end date of an existing membership", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        yield* store.grant({ ...change(p1), userId: u1, endDate: in2028 })
        expect(yield* endDateOf(u1)).toBe(in2028)
      }))

    test("stores end dates from year 0000 to 9999 with millisecond precision", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        for (const text of ["0000-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"]) {
          const endDate = date(text)
          yield* store.grant({ ...change(p1), userId: u1, endDate })
          expect(yield* endDateOf(u1)).toBe(endDate)
        }
      }))

    test("accepts user ids of 64 digits, and distinguishes 7 from 07", () =>
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
}

const extendTests = ({ describe, test }: StoreTests): void => {
  describe("extend", () => {
    test("sets a later or an earlier end date", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        yield* store.grant({ ...change(p2), userId: u1, endDate: in2027 })
        yield* store.extend({ ...change(p1), userId: u1, endDate: in2029 })
        yield* store.extend({ ...change(p1), userId: u2, endDate: in2028 })
        expect(yield* endDateOf(u1)).toBe(in2029)
        expect(yield* endDateOf(u2)).toBe(in2028)
        expect(yield* endDateOf(u1, p2)).toBe(in2027)
      }))

    test("can be repeated, which is audited each time", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        const extension = { ...change(p1), userId: u1, endDate: in2028 }
        yield* store.extend(extension)
        yield* store.extend({ ...extension, event: draft(p1) })
        expect(yield* endDateOf(u1)).toBe(in2028)
        expect(yield* store.history(p1, { userId: u1, limit: 2 })).toMatchObject([
          { from: in2028, to: in2028 },
          { from: in2027, to: in2028 },
        ])
      }))

    test("fails if the user has no membership in the project", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        const unknown = [
          { ...change(p1), userId: u3 },
          { ...change(p2), userId: u1 },
          { ...change(nowhere), userId: u1 },
        ]
        for (const one of unknown) {
          const error = yield* Effect.flip(store.extend({ ...one, endDate: in2028 }))
          expect(error._tag).toBe("MembershipNotFound")
        }
      }))
  })
}

const endTests = ({ describe, test }: StoreTests): void => {
  describe("end", () => {
    test("removes the membership, and none in another project", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        yield* store.grant({ ...change(p2), userId: u1, endDate: in2027 })
        yield* store.end({ ...change(p1), userId: u1 })
        expect(yield* endDateOf(u1, p2)).toBe(in2027)
        expect((yield* Effect.flip(store.find(p1, u1)))._tag).toBe("MembershipNotFound")
        expect(
          yield* store.extendAll({ ...change(p1), endDate: in2029, mode: "set" }),
        ).toMatchObject({
          total: 1,
        })
      }))

    test("fails if the user has no membership", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        const error = yield* Effect.flip(store.end({ ...change(p1), userId: u3 }))
        expect(error._tag).toBe("MembershipNotFound")
      }))
  })
}
