/** Projects. */

import { expect } from "@effect/vitest"
import { MembershipStore } from "@tenure/core/MembershipStore"
import { ProjectId } from "@tenure/core/Project"
import { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import {
  change,
  in2027,
  in2028,
  in2029,
  occasion,
  p1,
  p2,
  u1,
  u2,
  u3,
  webhook,
} from "../../support/fixtures.ts"
import type { StoreTests } from "../storeTests.ts"
import { nowhere, prepared } from "./steps.ts"

const readingTests = ({ describe, test }: StoreTests): void => {
  describe("findProject", () => {
    test("counts memberships and webhooks", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        const webhooks = yield* WebhookStore
        const [first, second] = [webhook(p1), webhook(p1)]
        yield* webhooks.add(first, 50, occasion)
        yield* webhooks.add(second, 50, occasion)
        yield* webhooks.remove(p1, first.id, occasion)
        const dated = [u2, u3].map((userId) => ({ userId, endDate: in2027 }))
        yield* store.import({ ...change(p1), memberships: dated })
        yield* store.end({ ...change(p1), userId: u1 })
        expect(yield* store.findProject(p1)).toEqual({
          id: p1,
          memberships: 2,
          webhooks: 1,
          lastBulkEndDate: undefined,
        })
        expect(yield* store.findProject(p2)).toEqual({
          id: p2,
          memberships: 0,
          webhooks: 0,
          lastBulkEndDate: undefined,
        })
      }))

    test("returns the date of the last bulk extension, of either mode", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        const lastBulk = Effect.map(store.findProject(p1), ({ lastBulkEndDate }) => lastBulkEndDate)
        yield* store.extendAll({ ...change(p1), endDate: in2029, mode: "set" })
        expect(yield* lastBulk).toBe(in2029)
        yield* store.extendAll({ ...change(p1), endDate: in2028, mode: "neverShorten" })
        expect(yield* lastBulk).toBe(in2028)
        yield* store.extend({ ...change(p1), userId: u1, endDate: in2027 })
        expect(yield* lastBulk).toBe(in2028)
      }))

    test("fails if the project does not exist", () =>
      Effect.gen(function* () {
        const store = yield* MembershipStore
        expect((yield* Effect.flip(store.findProject(nowhere)))._tag).toBe("ProjectNotFound")
      }))
  })

  describe("createProject", () => {
    test("creates each of many projects once, and records who asked for it", () =>
      Effect.gen(function* () {
        const store = yield* MembershipStore
        const ids = Array.from({ length: 300 }, (_, index) => ProjectId(`many-${index}`))
        const by = (requestId: string) => ({
          ...occasion,
          origin: { ...occasion.origin, requestId },
        })
        const creations = [...ids, ...ids].map((id, index) =>
          store.createProject(id, by(`request ${index % 300}`)),
        )
        yield* Effect.all(creations, { concurrency: "unbounded" })
        const page = { within: new Set(ids), after: undefined, limit: 1000 }
        const found = yield* store.listProjects(page)
        expect(new Set(found.map(({ id }) => id))).toEqual(new Set(ids))
        const rows = yield* store.history(undefined, { userId: undefined, limit: 1000 })
        const created = rows.flatMap((row) =>
          row.action === "project_created" ? [`${row.subject} ${row.origin.requestId}`] : [],
        )
        expect(created.toSorted()).toEqual(
          ids.map((id, index) => `${id} request ${index}`).toSorted(),
        )
      }))
  })

  describe("listProjects", () => {
    test("orders projects by their ids, page by page, of those within", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        const others = ["p10", "P1", "é"].map(ProjectId)
        for (const id of others) yield* store.createProject(id, occasion)
        const ids = (after: ProjectId | undefined, within: ReadonlySet<string> | "all" = "all") =>
          Effect.map(store.listProjects({ within, after, limit: 2 }), (page) =>
            page.map(({ id }) => id),
          )
        expect(yield* ids(undefined)).toEqual(["P1", "p1"])
        expect(yield* ids(p1)).toEqual(["p10", "p2"])
        expect(yield* ids(p2)).toEqual(["é"])
        const opened = new Set(["p1", "p2", "é", "nowhere"])
        expect(yield* ids(undefined, opened)).toEqual(["p1", "p2"])
        expect(yield* ids(p2, opened)).toEqual(["é"])
        expect(yield* ids(undefined, new Set())).toEqual([])
        const [found] = yield* store.listProjects({
          within: new Set([p1]),
          after: undefined,
          limit: 1,
        })
        expect(found).toEqual(yield* store.findProject(p1))
      }))
  })
}

/** Declares the tests. */
export const projectTests = (on: StoreTests): void => {
  readingTests(on)
}
