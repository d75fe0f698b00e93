/** Bulk extensions. */

import { expect } from "@effect/vitest"
import { EndDate } from "@tenure/core/EndDate"
import type { UserId } from "@tenure/core/Membership"
import * as Effect from "effect/Effect"
import { change, in2027, in2028, in2029, p1, p2, u1, u2, u3 } from "../../support/fixtures.ts"
import type { StoreTests } from "../storeTests.ts"
import { endDateOf, nowhere, prepared } from "./steps.ts"

/** A day after all dates that the members have. */
const day = (number: number): EndDate => EndDate(in2029 + number * 86_400_000)

/** Declares the tests. */
export const bulkTests = ({ describe, test }: StoreTests): void => {
  describe("extendAll", () => {
    test("sets and counts every membership of the project, including those that end later", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        yield* store.grant({ ...change(p2), userId: u1, endDate: in2027 })
        const extended = yield* store.extendAll({ ...change(p1), endDate: in2028, mode: "set" })
        expect(extended).toMatchObject({ total: 2 })
        expect(yield* endDateOf(u1)).toBe(in2028)
        expect(yield* endDateOf(u2)).toBe(in2028)
        expect(yield* endDateOf(u1, p2)).toBe(in2027)
      }))

    test("with neverShorten, counts every membership, and changes none that ends later", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        const bulk = { ...change(p1), endDate: in2028, mode: "neverShorten" } as const
        expect(yield* store.extendAll(bulk)).toMatchObject({ total: 2 })
        expect(yield* endDateOf(u1)).toBe(in2028)
        expect(yield* endDateOf(u2)).toBe(in2029)
      }))

    test("with neverShorten, applies the latest date to those whose own is older than it", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        const extendAll = (endDate: EndDate) =>
          store.extendAll({ ...change(p1), endDate, mode: "neverShorten" })
        const extend = (userId: UserId, endDate: EndDate) =>
          store.extend({ ...change(p1), userId, endDate })
        yield* extendAll(day(300))
        yield* extend(u1, day(1))
        yield* extendAll(day(200))
        yield* extend(u2, day(2))
        yield* extendAll(day(100))
        yield* store.grant({ ...change(p1), userId: u3, endDate: day(3) })
        expect(yield* endDateOf(u1)).toBe(day(200))
        expect(yield* endDateOf(u2)).toBe(day(100))
        expect(yield* endDateOf(u3)).toBe(day(3))
        yield* extendAll(day(150))
        expect(yield* endDateOf(u1)).toBe(day(200))
        expect(yield* endDateOf(u2)).toBe(day(150))
        expect(yield* endDateOf(u3)).toBe(day(150))
      }))

    test("with neverShorten, applies each of many dates that fall", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        for (let left = 100; left > 0; left--) {
          const bulk = { ...change(p1), endDate: day(left), mode: "neverShorten" } as const
          expect(yield* store.extendAll(bulk)).toMatchObject({ total: 2 })
          expect(yield* endDateOf(u1)).toBe(day(left))
          yield* store.extend({ ...change(p1), userId: u1, endDate: day(0) })
        }
        expect(yield* endDateOf(u1)).toBe(day(0))
        expect(yield* endDateOf(u2)).toBe(day(100))
      }))

    test("returns 0 for a project without members", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        for (const mode of ["set", "neverShorten"] as const) {
          const extended = yield* store.extendAll({ ...change(p2), endDate: in2028, mode })
          expect(extended).toMatchObject({ total: 0 })
        }
      }))

    test("fails if the project does not exist", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        const bulk = { ...change(nowhere), endDate: in2028, mode: "set" } as const
        expect((yield* Effect.flip(store.extendAll(bulk)))._tag).toBe("ProjectNotFound")
      }))

    test("is overridden by a later extension or grant", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        yield* store.extendAll({ ...change(p1), endDate: in2028, mode: "set" })
        yield* store.extend({ ...change(p1), userId: u1, endDate: in2027 })
        yield* store.grant({ ...change(p1), userId: u3, endDate: in2029 })
        expect(yield* endDateOf(u1)).toBe(in2027)
        expect(yield* endDateOf(u2)).toBe(in2028)
        expect(yield* endDateOf(u3)).toBe(in2029)
      }))

    test("does not apply to a member who left before it and returns after it", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        yield* store.end({ ...change(p1), userId: u1 })
        const extended = yield* store.extendAll({ ...change(p1), endDate: in2029, mode: "set" })
        expect(extended).toMatchObject({ total: 1 })
        yield* store.grant({ ...change(p1), userId: u1, endDate: in2027 })
        expect(yield* endDateOf(u1)).toBe(in2027)
      }))

    test("overrides the extensions that ended before it, including concurrent ones", () =>
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
}
