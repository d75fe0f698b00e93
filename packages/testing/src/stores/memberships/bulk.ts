/** Bulk extensions. */

import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { change, in2027, in2028, in2029, p1, p2, u1, u2, u3 } from "../../support/fixtures.ts"
import type { StoreTests } from "../storeTests.ts"
import { endDateOf, nowhere, prepared } from "./steps.ts"

/** Declares the tests. */
export const bulkTests = ({ describe, test }: StoreTests): void => {
  describe("extendAll", () => {
    test("sets and counts every membership of the project, including those that end later", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        yield* store.grant({ ...change(p2), userId: u1, endDate: in2027 })
        const total = yield* store.extendAll({ ...change(p1), endDate: in2028, mode: "set" })
        expect(total).toBe(2)
        expect(yield* endDateOf(u1)).toBe(in2028)
        expect(yield* endDateOf(u2)).toBe(in2028)
        expect(yield* endDateOf(u1, p2)).toBe(in2027)
      }))

    test("with neverShorten, neither changes nor counts memberships that end later", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        const bulk = { ...change(p1), endDate: in2028, mode: "neverShorten" } as const
        expect(yield* store.extendAll(bulk)).toBe(1)
        expect(yield* endDateOf(u1)).toBe(in2028)
        expect(yield* endDateOf(u2)).toBe(in2029)
      }))

    test("returns 0 for a project without members", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        for (const mode of ["set", "neverShorten"] as const) {
          expect(yield* store.extendAll({ ...change(p2), endDate: in2028, mode })).toBe(0)
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
        expect(yield* store.extendAll({ ...change(p1), endDate: in2029, mode: "set" })).toBe(1)
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
