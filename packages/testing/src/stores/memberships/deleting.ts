/** Deleting projects. */

import { expect } from "@effect/vitest"
import { ApiKeyId } from "@tenure/core/ApiKey"
import { ApiKeyStore } from "@tenure/core/ApiKeyStore"
import { MembershipStore } from "@tenure/core/MembershipStore"
import { isReplayed } from "@tenure/core/Once"
import { Outbox } from "@tenure/core/Outbox"
import type { ProjectId } from "@tenure/core/Project"
import { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import {
  apiKey,
  change,
  event,
  in2027,
  in2028,
  occasion,
  once,
  p1,
  p2,
  u1,
  u3,
  webhook,
} from "../../support/fixtures.ts"
import { undone } from "../HostTransaction.ts"
import { claims } from "../outbox/steps.ts"
import type { StoreTests } from "../storeTests.ts"
import { nowhere, prepared } from "./steps.ts"

const everything = { userId: undefined, limit: 1000 }

/** Two projects that have all that a project can have. */
const furnished = Effect.gen(function* () {
  const store = yield* prepared
  const outbox = yield* Outbox
  const keys = yield* ApiKeyStore
  const key = yield* keys.add(apiKey("a token", p1, p2), occasion)
  if (isReplayed(key)) return yield* Effect.die("a key that was issued before")
  const furnish = Effect.fnUntraced(function* (projectId: ProjectId) {
    const receiver = webhook(projectId)
    yield* (yield* WebhookStore).add(receiver, 50, occasion)
    const published = event(projectId)
    yield* outbox.publish(published)
    yield* store.extendAll({ ...change(projectId), endDate: in2028, mode: "set" })
    return { receiver, published }
  })
  return { store, key, one: yield* furnish(p1), other: yield* furnish(p2) }
})

/** Whatever can be read of a project. */
const readable = Effect.fnUntraced(function* ({ key, one }: Effect.Success<typeof furnished>) {
  const store = yield* MembershipStore
  const outbox = yield* Outbox
  const ref = { projectId: p1, webhookId: one.receiver.id }
  return {
    project: yield* Effect.exit(store.findProject(p1)),
    member: yield* Effect.exit(store.find(p1, u1)),
    memberships: yield* Effect.exit(store.list(p1, { after: undefined, limit: 10 })),
    history: yield* Effect.exit(store.history(p1, everything)),
    ofUser: yield* Effect.exit(store.history(p1, { ...everything, userId: u1 })),
    webhooks: yield* Effect.exit((yield* WebhookStore).list(p1)),
    event: yield* Effect.exit(outbox.find(p1, one.published.id)),
    deliveries: yield* outbox.deliveries(ref, { limit: 10 }),
    opened: (yield* (yield* ApiKeyStore).find(key.digest))?.projects,
  }
})

const deletionTests = ({ test, transactional }: StoreTests): void => {
  test("leaves nothing that can be read or changed, and other projects as they are", () =>
    Effect.gen(function* () {
      const all = yield* furnished
      const { other, store } = all
      yield* store.deleteProject(p1, occasion)
      const left = yield* readable(all)
      const missing = [left.project, left.memberships, left.history, left.ofUser, left.webhooks]
      for (const exit of missing) expect(exit._tag).toBe("Failure")
      expect([left.member._tag, left.event._tag]).toEqual(["Failure", "Failure"])
      expect(left.deliveries).toEqual([])
      expect(left.opened).toEqual(new Set([p2]))
      const changed = { ...change(p1), userId: u1, endDate: in2027 }
      const attempts: ReadonlyArray<Effect.Effect<unknown, { readonly _tag: string }>> = [
        store.grant(changed),
        store.extend(changed),
        store.end(changed),
        store.import({ ...changed, memberships: [{ userId: u3, endDate: in2027 }] }),
        store.extendAll({ ...changed, mode: "set" }),
        store.extendAll({ ...changed, mode: "neverShorten" }),
      ]
      for (const attempt of attempts) {
        expect((yield* Effect.flip(attempt))._tag).toMatch(/^(Project|Membership)NotFound$/)
      }
      expect(yield* store.listProjects({ within: "all", after: undefined, limit: 10 })).toEqual([
        yield* store.findProject(p2),
      ])
      const outbox = yield* Outbox
      expect((yield* outbox.find(p2, other.published.id)).id).toBe(other.published.id)
    }))

  test("leaves nothing to a project that is created again", () =>
    Effect.gen(function* () {
      const all = yield* furnished
      const { store } = all
      yield* store.deleteProject(p1, occasion)
      yield* store.createProject(p1, occasion)
      const nothing = {
        project: { id: p1, memberships: 0, webhooks: 0, lastBulkEndDate: undefined },
        memberships: [],
        history: [],
        ofUser: [],
        webhooks: [],
      }
      const left = yield* readable(all)
      for (const [name, value] of Object.entries(nothing)) {
        expect(left).toMatchObject({ [name]: { _tag: "Success", value } })
      }
      expect([left.member._tag, left.event._tag]).toEqual(["Failure", "Failure"])
      expect(left.deliveries).toEqual([])
      expect(left.opened).toEqual(new Set([p2]))
      yield* store.grant({ ...change(p1), userId: u1, endDate: in2027 })
      expect((yield* store.find(p1, u1)).endDate).toBe(in2027)
      expect(yield* store.history(p1, { ...everything, userId: u1 })).toMatchObject([
        { action: "granted", from: undefined, to: in2027 },
      ])
    }))

  test("voids the claims of its deliveries", () =>
    Effect.gen(function* () {
      const { one, other, store } = yield* furnished
      const outbox = yield* Outbox
      const claimed = yield* claims()
      yield* store.deleteProject(p1, occasion)
      yield* store.createProject(p1, occasion)
      for (const claim of claimed) {
        const settled = yield* outbox.settle(claim, { _tag: "Released" })
        expect(settled).toBe(claim.webhook.webhookId === one.receiver.id ? "Lapsed" : "Settled")
      }
      const again = yield* claims()
      expect(new Set(again.map(({ webhook: { webhookId } }) => webhookId))).toEqual(
        new Set([other.receiver.id]),
      )
    }))

  test("is in the trail, with who asked for it", () =>
    Effect.gen(function* () {
      const { store } = yield* furnished
      const origin = { requestId: "r1", keyId: ApiKeyId("k1") }
      yield* store.deleteProject(p1, { origin, at: 7 })
      const [row] = yield* store.history(undefined, everything)
      expect(row).toMatchObject({ action: "project_deleted", subject: p1, origin, at: 7 })
      expect(row?.reason).toBeUndefined()
    }))

  test("fails if the project does not exist", () =>
    Effect.gen(function* () {
      const { store } = yield* furnished
      for (const id of [nowhere, p1]) {
        if (id === p1) yield* store.deleteProject(p1, occasion)
        const error = yield* Effect.flip(store.deleteProject(id, occasion))
        expect(error).toMatchObject({ _tag: "ProjectNotFound", projectId: id })
      }
    }))

  test("happens once if several delete the project at the same time", () =>
    Effect.gen(function* () {
      const { store } = yield* furnished
      const deletions = Array.from({ length: 4 }, () =>
        Effect.exit(store.deleteProject(p1, occasion)),
      )
      const exits = yield* Effect.all(deletions, { concurrency: "unbounded" })
      expect(exits.filter(({ _tag }) => _tag === "Success")).toHaveLength(1)
    }))

  test("happens once with an idempotency key, whatever was created since", () =>
    Effect.gen(function* () {
      const { store } = yield* furnished
      const keyed = { ...occasion, once: once() }
      yield* store.deleteProject(p1, keyed)
      expect(isReplayed(yield* store.deleteProject(p1, keyed))).toBe(true)
      yield* store.createProject(p1, occasion)
      expect(isReplayed(yield* store.deleteProject(p1, keyed))).toBe(true)
      expect((yield* store.findProject(p1)).id).toBe(p1)
    }))

  test("forgets the idempotency keys of its changes, and no others", () =>
    Effect.gen(function* () {
      const { store } = yield* furnished
      const key = once()
      const grant = (projectId: ProjectId) =>
        store.grant({ ...change(projectId), userId: u3, endDate: in2027, once: key })
      yield* grant(p1)
      const kept = once()
      const other = { ...change(p2), userId: u3, endDate: in2027, once: kept }
      yield* store.grant(other)
      yield* store.deleteProject(p1, occasion)
      expect(yield* store.recall(key, p1)).toBeUndefined()
      yield* store.createProject(p1, occasion)
      expect(isReplayed(yield* grant(p1))).toBe(false)
      expect(isReplayed(yield* grant(p1))).toBe(true)
      expect(isReplayed(yield* store.grant(other))).toBe(true)
    }))

  transactional("is undone with a transaction of the host that fails", () =>
    Effect.gen(function* () {
      const { store } = yield* furnished
      yield* undone(store.deleteProject(p1, occasion))
      expect(yield* store.findProject(p1)).toMatchObject({ memberships: 2, webhooks: 1 })
      expect(yield* claims()).not.toEqual([])
    }),
  )
}

/** Declares the tests. */
export const deletingTests = (on: StoreTests): void => {
  on.describe("a project that is deleted", () => {
    deletionTests(on)
  })
}
