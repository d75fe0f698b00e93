/** Projects. */

import { expect } from "@effect/vitest"
import { Memberships } from "@tenure/core/effect"
import { bulkModes, isReplayedResponse } from "@tenure/core/internal"
import {
  ApiKeyId,
  ApiKeyStore,
  EndDate,
  MembershipStore,
  Outbox,
  ProjectId,
  WebhookStore,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import {
  apiKey,
  change,
  event,
  in2027,
  in2028,
  in2029,
  occasion,
  once,
  p1,
  p2,
  u1,
  u2,
  u3,
  makeWebhook,
  makeWebhook as newWebhook,
} from "../../support/fixtures.ts"
import { type StoreTests, undone } from "../declare.ts"
import { claims } from "../outbox/steps.ts"
import { nowhere, prepared } from "./model.ts"

/** Declares the tests. */
export const projectTests = (on: StoreTests): void => {
  const { describe, test } = on

  describe("findProject", () => {
    test("counts memberships and webhooks", function* () {
      const store = yield* prepared
      const webhooks = yield* WebhookStore
      const [first, second] = [makeWebhook(p1), makeWebhook(p1)]
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
    })

    test("returns the date of the last bulk extension, of either mode", function* () {
      const store = yield* prepared
      const lastBulk = Effect.map(store.findProject(p1), ({ lastBulkEndDate }) => lastBulkEndDate)
      yield* store.extendAll({ ...change(p1), bulk: { endDate: in2029, mode: "set" } })
      expect(yield* lastBulk).toBe(in2029)
      yield* store.extendAll({ ...change(p1), bulk: { endDate: in2028, mode: "neverShorten" } })
      expect(yield* lastBulk).toBe(in2028)
      yield* store.extend({ ...change(p1), userId: u1, endDate: in2027 })
      expect(yield* lastBulk).toBe(in2028)
    })
  })

  describe("createProject", () => {
    test("creates each of many projects once, and records who asked for it", function* () {
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
    })
  })

  describe("listProjects", () => {
    test("orders projects by their ids, page by page, of those within", function* () {
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
    })
  })
}

/** Membership counts by end date, and dry runs for bulk extensions. */

/** Everything a change writes. */
const everything = Effect.gen(function* () {
  const store = yield* MembershipStore
  const [webhook] = yield* (yield* WebhookStore).list(p1)
  const of = { projectId: p1, webhookId: (webhook ?? newWebhook(p1)).id }
  return {
    members: yield* store.list(p1, { after: undefined, limit: 1000, only: undefined }),
    rows: yield* store.history(p1, { userId: undefined, limit: 1000 }),
    deliveries: yield* (yield* Outbox).deliveries(of, { limit: 1000 }),
  }
})

// Far in the future, so none is in the past for a store with its own clock.
const dates = fc.nat({ max: 4 }).map((years) => EndDate(Date.UTC(2800 + years, 0, 1)))
const users = fc.constantFrom(u1, u2, u3)

const situations = fc.record({
  mode: fc.constantFrom(...bulkModes),
  granted: fc.array(fc.tuple(users, dates), { maxLength: 5 }),
  extended: fc.array(fc.record({ endDate: dates, mode: fc.constantFrom(...bulkModes) }), {
    maxLength: 3,
  }),
  changed: fc.option(fc.tuple(users, dates), { nil: undefined }),
  userId: users,
  endDate: dates,
  expectedEndDate: fc.option(dates, { nil: undefined }),
})

type Situation = typeof situations extends fc.Arbitrary<infer Value> ? Value : never

/** Prepares members with their own dates, and with a bulk extension's. */
const arrange = Effect.fnUntraced(function* ({ changed, extended, granted }: Situation) {
  const store = yield* MembershipStore
  yield* store.createProject(p1, occasion)
  yield* (yield* WebhookStore).add(newWebhook(p1), 50, occasion)
  const grant = ([userId, endDate]: readonly [typeof u1, EndDate]) =>
    store.grant({ ...change(p1), userId, endDate })
  yield* Effect.forEach(granted, grant)
  for (const bulk of extended) yield* store.extendAll({ ...change(p1), bulk })
  if (changed !== undefined) yield* grant(changed)
})

const dryRunTests = ({ property }: StoreTests): void =>
  property(
    "is told by a dry run, which changes nothing",
    situations,
    Effect.fnUntraced(function* (situation: Situation) {
      yield* arrange(situation)
      const { endDate, expectedEndDate, mode, userId } = situation
      const work = Effect.gen(function* () {
        const memberships = yield* Memberships
        const one = { projectId: p1, userId, endDate, expectedEndDate }
        const all = { projectId: p1, endDate, mode }
        const before = yield* everything
        const dryOne = yield* Effect.result(memberships.extend({ ...one, dryRun: true }))
        const dryAll = yield* memberships.extendAll({ ...all, dryRun: true })
        expect(yield* everything).toEqual(before)
        const isLater = before.members.filter((member) => member.endDate > endDate)
        expect(dryAll.preview?.shortened).toBe(mode === "set" ? isLater.length : 0)
        const { preview: _, ...foreseen } = dryAll
        expect(foreseen).toEqual(yield* memberships.extendAll(all))
        // The bulk extension has changed the expected date.
        yield* Effect.forEach(before.members, (member) => memberships.grant(member))
        expect(dryOne).toEqual(yield* Effect.result(memberships.extend(one)))
      })
      yield* Effect.provide(work, Memberships.layer())
    }),
  )

/** Declares the tests. */
export const countingTests = (on: StoreTests): void => {
  on.describe("what an extension would do", () => dryRunTests(on))
}

/** Deleting projects. */

const deletingEverything = { userId: undefined, limit: 1000 }

/** Two projects with all kinds of data. */
const furnished = Effect.gen(function* () {
  const store = yield* prepared
  const outbox = yield* Outbox
  const keys = yield* ApiKeyStore
  const key = yield* keys.add(apiKey("a token", p1, p2), occasion)
  if (isReplayedResponse(key)) return yield* Effect.die("a key that was issued before")
  const furnish = Effect.fnUntraced(function* (projectId: ProjectId) {
    const receiver = makeWebhook(projectId)
    yield* (yield* WebhookStore).add(receiver, 50, occasion)
    const published = event(projectId)
    yield* outbox.publish(published)
    yield* store.extendAll({ ...change(projectId), bulk: { endDate: in2028, mode: "set" } })
    return { receiver, published }
  })
  return { store, key, one: yield* furnish(p1), other: yield* furnish(p2) }
})

/** Reads all of a project's data. */
const readable = Effect.fnUntraced(function* ({ key, one }: Effect.Success<typeof furnished>) {
  const store = yield* MembershipStore
  const outbox = yield* Outbox
  const ref = { projectId: p1, webhookId: one.receiver.id }
  return {
    project: yield* Effect.exit(store.findProject(p1)),
    member: yield* Effect.exit(store.find(p1, u1)),
    memberships: yield* Effect.exit(store.list(p1, { after: undefined, limit: 10 })),
    history: yield* Effect.exit(store.history(p1, deletingEverything)),
    ofUser: yield* Effect.exit(store.history(p1, { ...deletingEverything, userId: u1 })),
    webhooks: yield* Effect.exit((yield* WebhookStore).list(p1)),
    event: yield* Effect.exit(outbox.find(p1, one.published.id)),
    deliveries: yield* outbox.deliveries(ref, { limit: 10 }),
    opened: (yield* (yield* ApiKeyStore).find(key.digest))?.projects,
  }
})

/** Declares the tests. */
export const deletingTests = (on: StoreTests): void => {
  const { test, transactional } = on

  on.describe("a project that is deleted", () => {
    test("leaves nothing that can be read or changed, and other projects as they are", function* () {
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
        store.extendAll({ ...changed, bulk: { endDate: in2027, mode: "set" } }),
        store.extendAll({ ...changed, bulk: { endDate: in2027, mode: "neverShorten" } }),
      ]
      for (const attempt of attempts) {
        expect((yield* Effect.flip(attempt))._tag).toMatch(/^(Project|Membership)NotFound$/)
      }
      expect(yield* store.listProjects({ within: "all", after: undefined, limit: 10 })).toEqual([
        yield* store.findProject(p2),
      ])
      const outbox = yield* Outbox
      expect((yield* outbox.find(p2, other.published.id)).id).toBe(other.published.id)
    })

    test("leaves nothing to a project that is created again", function* () {
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
      expect(yield* store.history(p1, { ...deletingEverything, userId: u1 })).toMatchObject([
        { action: "granted", from: undefined, to: in2027 },
      ])
    })

    test("voids the claims of its deliveries", function* () {
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
    })

    test("is in the trail, with who asked for it", function* () {
      const { store } = yield* furnished
      const origin = { requestId: "r1", keyId: ApiKeyId("k1") }
      yield* store.deleteProject(p1, { origin, at: 7 })
      const [row] = yield* store.history(undefined, deletingEverything)
      expect(row).toMatchObject({ action: "project_deleted", subject: p1, origin, at: 7 })
      expect(row?.reason).toBeUndefined()
    })

    test("fails if the project does not exist", function* () {
      const { store } = yield* furnished
      for (const id of [nowhere, p1]) {
        if (id === p1) yield* store.deleteProject(p1, occasion)
        const error = yield* Effect.flip(store.deleteProject(id, occasion))
        expect(error).toMatchObject({ _tag: "ProjectNotFound", projectId: id })
      }
    })

    test("happens once if several delete the project at the same time", function* () {
      const { store } = yield* furnished
      const deletions = Array.from({ length: 4 }, () =>
        Effect.exit(store.deleteProject(p1, occasion)),
      )
      const exits = yield* Effect.all(deletions, { concurrency: "unbounded" })
      expect(exits.filter(({ _tag }) => _tag === "Success")).toHaveLength(1)
    })

    test("happens once with an idempotency key, whatever was created since", function* () {
      const { store } = yield* furnished
      const keyed = { ...occasion, once: once() }
      yield* store.deleteProject(p1, keyed)
      expect(isReplayedResponse(yield* store.deleteProject(p1, keyed))).toBe(true)
      yield* store.createProject(p1, occasion)
      expect(isReplayedResponse(yield* store.deleteProject(p1, keyed))).toBe(true)
      expect((yield* store.findProject(p1)).id).toBe(p1)
    })

    test("forgets the idempotency keys of its changes, and no others", function* () {
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
      expect(isReplayedResponse(yield* grant(p1))).toBe(false)
      expect(isReplayedResponse(yield* grant(p1))).toBe(true)
      expect(isReplayedResponse(yield* store.grant(other))).toBe(true)
    })

    transactional("is undone with a transaction of the host that fails", function* () {
      const { store } = yield* furnished
      yield* undone(store.deleteProject(p1, occasion))
      expect(yield* store.findProject(p1)).toMatchObject({ memberships: 2, webhooks: 1 })
      expect(yield* claims()).not.toEqual([])
    })
  })
}
