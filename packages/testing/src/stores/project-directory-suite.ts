/** Certifies a `ProjectDirectory`. */

import { expect } from "@effect/vitest"
import { digestToken, isReplayedResponse } from "@tenure/core/internal"
import { ApiKeyStore, MembershipStore, ProjectDirectory, ProjectId } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Fixture from "../support/fixtures.ts"
import type { StoreTests } from "./declare.ts"

const { apiKey, occasion, once, p1, p2 } = Fixture

const directory = Effect.flatMap(Effect.serviceOption(ProjectDirectory), Effect.fromOption)

const all = { within: "all", after: undefined, limit: 10 } as const

/** Returns the audit trail for projects, oldest first. */
const trail = Effect.flatMap(MembershipStore, (store) =>
  Effect.map(store.history(undefined, { userId: undefined, limit: 100 }), (rows) =>
    rows.map(({ action, subject }) => [action, subject]).toReversed(),
  ),
)

const changeTests = ({ test }: StoreTests): void => {
  test("adds a project once, and removes it", () =>
    Effect.gen(function* () {
      const { add, has, list, remove } = yield* directory
      yield* remove(p1, occasion)
      expect(yield* has(p1)).toBe(false)
      yield* Effect.all(
        Array.from({ length: 5 }, () => add(p1, occasion)),
        { concurrency: "unbounded" },
      )
      yield* add(p2, occasion)
      expect([yield* has(p1), yield* has(p2), yield* has(ProjectId("p3"))]).toEqual([
        true,
        true,
        false,
      ])
      yield* remove(p1, occasion)
      yield* remove(p1, occasion)
      expect(yield* has(p1)).toBe(false)
      expect(yield* list(all)).toEqual([p2])
      expect(yield* trail).toEqual([
        ["project_created", p1],
        ["project_created", p2],
        ["project_deleted", p1],
      ])
    }))

  test("is unknown to the other ports of the store", () =>
    Effect.gen(function* () {
      const { add } = yield* directory
      const memberships = yield* MembershipStore
      yield* add(p1, occasion)
      expect((yield* Effect.flip(memberships.findProject(p1)))._tag).toBe("ProjectNotFound")
      expect(yield* memberships.listProjects(all)).toEqual([])
    }))

  test("makes a change with an idempotency key once", () =>
    Effect.gen(function* () {
      const { add, has, remove } = yield* directory
      const [adding, removing] = [
        { ...occasion, once: once() },
        { ...occasion, once: once() },
      ]
      expect(isReplayedResponse(yield* add(p1, adding))).toBe(false)
      expect(isReplayedResponse(yield* remove(p1, removing))).toBe(false)
      expect(isReplayedResponse(yield* add(p1, adding))).toBe(true)
      expect(yield* has(p1)).toBe(false)
      yield* add(p1, occasion)
      expect(isReplayedResponse(yield* remove(p1, removing))).toBe(true)
      expect(yield* has(p1)).toBe(true)
    }))

  test("refuses an idempotency key of another request, and changes nothing", () =>
    Effect.gen(function* () {
      const { add, has, remove } = yield* directory
      const key = once()
      yield* add(p1, { ...occasion, once: key })
      const another = { ...occasion, once: { ...key, fingerprint: "another" } }
      for (const refused of [add(p2, another), remove(p1, another)])
        expect((yield* Effect.flip(refused))._tag).toBe("IdempotencyMismatch")
      expect([yield* has(p1), yield* has(p2)]).toEqual([true, false])
    }))
}

const listTests = ({ test }: StoreTests): void => {
  test("lists projects in pages, in the order of their ids by code unit", () =>
    Effect.gen(function* () {
      const { add, list } = yield* directory
      const ids = ["B", "Z", "_", "a", "b"].map((id) => ProjectId(id))
      yield* Effect.forEach(ids.toReversed(), (id) => add(id, occasion))
      expect(yield* list(all)).toEqual(ids)
      const [first, second] = [ids.slice(0, 2), ids.slice(2, 4)]
      expect(yield* list({ ...all, limit: 2 })).toEqual(first)
      expect(yield* list({ ...all, after: ids[1], limit: 2 })).toEqual(second)
      const within = new Set(["a", "B", "elsewhere"])
      expect(yield* list({ ...all, within })).toEqual([ids[0], ids[3]])
      expect(yield* list({ ...all, within, after: ids[0] })).toEqual([ids[3]])
      expect(yield* list({ ...all, within: new Set() })).toEqual([])
    }))
}

const keyTests = ({ test }: StoreTests): void => {
  test("lets API keys open its projects until these are removed", () =>
    Effect.gen(function* () {
      const { add, remove } = yield* directory
      const keys = yield* ApiKeyStore
      yield* (yield* MembershipStore).createProject(p2, occasion)
      const key = apiKey("a token", p1, p2)
      expect((yield* Effect.flip(keys.add(key, occasion)))._tag).toBe("ProjectNotFound")
      yield* add(p1, occasion)
      yield* keys.add(key, occasion)
      const projects = Effect.map(keys.find(digestToken("a token")), (found) => found?.projects)
      expect(yield* projects).toEqual(new Set([p1, p2]))
      yield* remove(p1, occasion)
      expect(yield* projects).toEqual(new Set([p2]))
      yield* add(p1, occasion)
      expect(yield* projects).toEqual(new Set([p2]))
    }))
}

/** Declares the tests. */
export const projectDirectorySuite = (on: StoreTests): void => {
  changeTests(on)
  listTests(on)
  keyTests(on)
}
