/** Projects, what an extension would do in them, and how they are deleted. */

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
  Reason,
  TimeZone,
  WebhookStore,
  defaultProjectSettings,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import * as Fixture from "../../support/fixtures.ts"
import { type StoreTests, undone } from "../declare.ts"
import { claims, deliveriesOf, publishMany, settle, webhookIdsOf } from "../outbox/steps.ts"
import { addWebhook, expectFailure, firstOf, outcomeOf, successesOf, together } from "../steps.ts"
import { changeSettings, changesAt, everything, observe } from "./every-change.ts"
import { endDateOf, nowhere, prepared } from "./every-change.ts"

const { apiKey, change, in2027, in2028, in2029, context, idempotency, p1, p2, u1, u2, u3 } = Fixture

const utc = TimeZone("UTC")
const berlin = TimeZone("Europe/Berlin")
const kathmandu = TimeZone("Asia/Kathmandu")

export const projectTests = (on: StoreTests): void => {
  const { describe } = on
  const { test, transactional } = on.testsAfter(prepared)

  describe("findProject", () => {
    test("counts memberships and webhooks", function* (store) {
      const { id } = yield* addWebhook()
      yield* addWebhook()
      yield* WebhookStore.use((webhooks) => webhooks.remove(p1, id, context))
      const dated = [u2, u3].map((userId) => ({ userId, endDate: in2027 }))
      yield* store.import({ ...change(p1), memberships: dated })
      yield* store.end({ ...change(p1), userId: u1 })
      const found = {
        id: p1,
        memberships: 2,
        webhooks: 1,
        lastBulkEndDate: undefined,
        ...defaultProjectSettings,
      }
      expect(yield* store.findProject(p1)).toEqual(found)
      const empty = { ...found, id: p2, memberships: 0, webhooks: 0 }
      expect(yield* store.findProject(p2)).toEqual(empty)
    })

    test("returns the date of the last bulk extension, of either mode", function* (store) {
      const lastBulk = Effect.map(store.findProject(p1), ({ lastBulkEndDate }) => lastBulkEndDate)
      yield* store.extendAll({ ...change(p1), bulk: { endDate: in2029, mode: "set" } })
      expect(yield* lastBulk).toBe(in2029)
      yield* store.extendAll({ ...change(p1), bulk: { endDate: in2028, mode: "neverShorten" } })
      yield* store.extend({ ...change(p1), userId: u1, endDate: in2027 })
      expect(yield* lastBulk).toBe(in2028)
    })
  })

  describe("createProject", () => {
    test("creates each of many projects once, and records who asked for it", function* (store) {
      const ids = Array.from({ length: 300 }, (_, index) => ProjectId(`many-${index}`))
      const creations = [...ids, ...ids].map((id, index) => {
        const origin = { ...context.origin, requestId: `request ${index % 300}` }
        return store.createProject(id, { ...context, origin })
      })
      yield* together(creations)
      const page = { within: new Set(ids), after: undefined, limit: 1000 }
      const found = yield* store.listProjects(page)
      expect(new Set(found.map(({ id }) => id))).toEqual(new Set(ids))
      const rows = yield* store.history(undefined, everything)
      const created = rows.flatMap(({ action, origin, subject }) =>
        action === "project_created" && origin.requestId !== undefined
          ? [`${subject} ${origin.requestId}`]
          : [],
      )
      expect(created.toSorted()).toEqual(
        ids.map((id, index) => `${id} request ${index}`).toSorted(),
      )
    })
  })

  describe("updateProject", () => {
    test("sets the time zone of one project, and moves no end date", function* (store) {
      const written = yield* observe()
      const before = yield* written
      yield* changeSettings(store, change(p1), { timeZone: berlin })
      expect((yield* store.findProject(p1)).timeZone).toBe(berlin)
      const { memberships, deliveries } = yield* written
      expect(memberships).toEqual(before.memberships.map((one) => ({ ...one, timeZone: berlin })))
      expect(deliveries).toEqual([])
      const listed = yield* store.listProjects({ within: "all", after: undefined, limit: 10 })
      expect(listed.map(({ id, timeZone }) => [id, timeZone])).toEqual([
        [p1, berlin],
        [p2, utc],
      ])
      // A project that exists is not created again.
      yield* store.createProject(p1, context)
      expect((yield* store.findProject(p1)).timeZone).toBe(berlin)
    })

    test("fails if the project has other settings than expected, or does not exist", function* (store) {
      yield* changeSettings(store, change(p1), { timeZone: berlin })
      const written = yield* observe()
      for (const projectId of [p1, nowhere]) {
        yield* expectFailure(
          "ProjectConflict",
          changeSettings(store, change(projectId), { timeZone: kathmandu }),
        )
      }
      yield* changeSettings(
        store,
        change(p1),
        { timeZone: kathmandu },
        {
          ...defaultProjectSettings,
          timeZone: berlin,
        },
      )
      expect((yield* store.findProject(p1)).timeZone).toBe(kathmandu)
      expect((yield* written).rows).toHaveLength(1)
    })

    test("succeeds once, if many expect the same settings at the same time", function* (store) {
      expect(
        yield* successesOf(8, () => changeSettings(store, change(p1), { timeZone: berlin })),
      ).toBe(1)
    })

    test("is in the trail of the project with what differs, if anything does", function* (store) {
      const origin = { requestId: "r1", keyId: undefined }
      const reason = Reason("The shop has moved")
      const by = { ...change(p1), origin, reason, at: 7 }
      yield* changeSettings(store, by, { timeZone: utc })
      expect(yield* store.history(p1, { ...everything, limit: 1 })).toMatchObject([
        { action: "granted" },
      ])
      yield* changeSettings(store, by, { timeZone: berlin })
      const [row] = yield* store.history(p1, everything)
      expect(row).toEqual({
        cursor: expect.any(String),
        projectId: p1,
        userId: undefined,
        action: "project_changed",
        subject: p1,
        origin,
        keyName: undefined,
        reason,
        from: undefined,
        to: undefined,
        by: undefined,
        changes: [{ field: "timeZone", from: "UTC", to: "Europe/Berlin" }],
        at: 7,
      })
      expect(yield* store.history(p1, { ...everything, userId: u1 })).toMatchObject([
        { action: "granted" },
      ])
      expect(yield* store.history(p2, everything)).toEqual([])
    })

    transactional("is undone with a transaction of the host that fails", function* (store) {
      yield* undone(changeSettings(store, change(p1), { timeZone: berlin }))
      expect((yield* store.findProject(p1)).timeZone).toBe(utc)
    })
  })

  describe("listProjects", () => {
    test("orders projects by their ids, page by page, of those within", function* (store) {
      const others = ["p10", "P1", "é"].map(ProjectId)
      for (const id of others) yield* store.createProject(id, context)
      const list = (after: ProjectId | undefined, within: ReadonlySet<string> | "all" = "all") =>
        store.listProjects({ within, after, limit: 2 })
      const ids = (...page: Parameters<typeof list>) =>
        Effect.map(list(...page), (found) => found.map(({ id }) => id))
      expect(yield* ids(undefined)).toEqual(["P1", "p1"])
      expect(yield* ids(p1)).toEqual(["p10", "p2"])
      expect(yield* ids(p2)).toEqual(["é"])
      const opened = new Set(["p1", "p2", "é", "nowhere"])
      expect(yield* ids(undefined, opened)).toEqual(["p1", "p2"])
      expect(yield* ids(p2, opened)).toEqual(["é"])
      expect(yield* ids(undefined, new Set())).toEqual([])
      expect(yield* list(undefined, new Set([p1]))).toEqual([yield* store.findProject(p1)])
    })
  })
}

// Far in the future, so none is in the past for a store with its own clock.
const dates = fc.nat({ max: 4 }).map((years) => EndDate(Date.UTC(2800 + years, 0, 1)))
const users = fc.constantFrom(u1, u2, u3)

/** Members with their own dates and those of bulk extensions, and two further extensions. */
const situations = fc.record({
  mode: fc.constantFrom(...bulkModes),
  granted: fc.array(fc.tuple(users, dates), { maxLength: 5 }),
  extended: fc.array(fc.record({ endDate: dates, mode: fc.constantFrom(...bulkModes) }), {
    maxLength: 3,
  }),
  changed: fc.array(fc.tuple(users, dates), { maxLength: 1 }),
  userId: users,
  endDate: dates,
  expectedEndDate: fc.option(dates, { nil: undefined }),
})

export const countingTests = ({ describe, property }: StoreTests): void => {
  describe("what an extension would do", () => {
    property(
      "is told by a dry run, which changes nothing",
      situations,
      Effect.fnUntraced(function* ({ changed, endDate, extended, granted, mode, ...asked }) {
        const store = yield* MembershipStore
        yield* store.createProject(p1, context)
        const written = yield* observe()
        const grantAll = (all: typeof granted) =>
          Effect.forEach(all, ([userId, to]) => store.grant({ ...change(p1), userId, endDate: to }))
        yield* grantAll(granted)
        for (const bulk of extended) yield* store.extendAll({ ...change(p1), bulk })
        yield* grantAll(changed)
        const work = Effect.gen(function* () {
          const memberships = yield* Memberships
          const one = { ...asked, projectId: p1, endDate }
          const all = { projectId: p1, endDate, mode }
          const before = yield* written
          const triedOne = Effect.map(
            memberships.extend({ ...one, dryRun: true }),
            ({ announcements: _, ...told }) => told,
          )
          const dryOne = yield* Effect.result(triedOne)
          const dryAll = yield* memberships.extendAll({ ...all, dryRun: true })
          expect(yield* written).toEqual(before)
          const isLater = before.memberships.filter((member) => member.endDate > endDate)
          expect(dryAll.preview?.shortened).toBe(mode === "set" ? isLater.length : 0)
          const { preview: _, ...foreseen } = dryAll
          expect(foreseen).toEqual(yield* memberships.extendAll(all))
          // The bulk extension has changed the expected date.
          yield* Effect.forEach(before.memberships, ({ endDate: date, userId }) =>
            memberships.grant({ projectId: p1, userId, endDate: date }),
          )
          expect(dryOne).toEqual(yield* Effect.result(memberships.extend(one)))
        })
        yield* Effect.provide(work, Memberships.layer())
      }),
    )
  })
}

/** Two projects with all kinds in them. */
const furnished = Effect.gen(function* () {
  const store = yield* prepared
  const key = yield* ApiKeyStore.use((keys) => keys.add(apiKey("a token", p1, p2), context))
  if (isReplayedResponse(key)) return yield* Effect.die("a key that was issued before")
  const furnish = Effect.fnUntraced(function* (projectId: ProjectId) {
    const receiver = yield* addWebhook(projectId)
    const published = firstOf(yield* publishMany(1, projectId))
    yield* store.extendAll({ ...change(projectId), bulk: { endDate: in2028, mode: "set" } })
    yield* changeSettings(store, change(projectId), { timeZone: berlin })
    return { receiver, published }
  })
  return { store, key, one: yield* furnish(p1), other: yield* furnish(p2) }
})

/** Reads all of a project's data: each answer, or the tag of the failure. */
const readable = Effect.fnUntraced(function* ({ key, one }: Effect.Success<typeof furnished>) {
  const store = yield* MembershipStore
  const outbox = yield* Outbox
  const webhooks = yield* WebhookStore
  const answerOf = <A, R>(asked: Effect.Effect<A, { readonly _tag: string }, R>) =>
    Effect.catch(asked, ({ _tag }) => Effect.succeed(_tag))
  return {
    project: yield* answerOf(store.findProject(p1)),
    memberships: yield* answerOf(store.list(p1, { after: undefined, limit: 10 })),
    counts: yield* answerOf(
      Effect.map(store.countEnds(p1, { days: undefined, change: undefined }), ({ total }) => total),
    ),
    history: yield* answerOf(store.history(p1, everything)),
    ofUser: yield* answerOf(store.history(p1, { ...everything, userId: u1 })),
    webhooks: yield* answerOf(webhooks.list(p1)),
    member: yield* answerOf(store.find(p1, u1)),
    event: yield* answerOf(outbox.find(p1, one.published.id)),
    deliveries: yield* deliveriesOf(one.receiver),
    opened: (yield* (yield* ApiKeyStore).find(key.digest))?.projects,
  }
})

/** What a deleted project leaves, whether it is created again or not. */
const nothing = {
  member: "MembershipNotFound",
  event: "EventNotFound",
  deliveries: [],
  opened: new Set([p2]),
}

export const deletingTests = (on: StoreTests): void => {
  const { test, transactional } = on.testsAfter(furnished)

  on.describe("a project that is deleted", () => {
    test("leaves nothing that can be read or changed, and other projects as they are", function* (all) {
      const { other, store } = all
      yield* store.deleteProject(p1, context)
      const missing = "ProjectNotFound"
      expect(yield* readable(all)).toEqual({
        ...nothing,
        project: missing,
        memberships: missing,
        counts: missing,
        history: missing,
        ofUser: missing,
        webhooks: missing,
      })
      for (const [name, make] of changesAt(on)) {
        if (name.startsWith("the creation")) continue
        expect([name, yield* outcomeOf(make(store, change(p1)))]).toEqual([
          name,
          expect.stringMatching(/NotFound$|Conflict$/),
        ])
      }
      expect(yield* store.listProjects({ within: "all", after: undefined, limit: 10 })).toEqual([
        yield* store.findProject(p2),
      ])
      const outbox = yield* Outbox
      expect((yield* outbox.find(p2, other.published.id)).id).toBe(other.published.id)
    })

    test("leaves nothing to a project that is created again", function* (all) {
      const { store } = all
      yield* store.deleteProject(p1, context)
      yield* store.createProject(p1, context)
      expect(yield* readable(all)).toEqual({
        ...nothing,
        project: {
          id: p1,
          memberships: 0,
          webhooks: 0,
          lastBulkEndDate: undefined,
          ...defaultProjectSettings,
        },
        memberships: [],
        counts: 0,
        history: [],
        ofUser: [],
        webhooks: [],
      })
      yield* store.grant({ ...change(p1), userId: u1, endDate: in2027 })
      expect(yield* endDateOf(u1)).toBe(in2027)
      expect(yield* store.history(p1, { ...everything, userId: u1 })).toMatchObject([
        { action: "granted", from: undefined, to: in2027 },
      ])
    })

    test("voids the claims of its deliveries", function* ({ one, other, store }) {
      const claimed = yield* claims()
      yield* store.deleteProject(p1, context)
      yield* store.createProject(p1, context)
      for (const claim of claimed) {
        const settled = yield* settle(claim, { _tag: "Released" })
        expect(settled).toBe(claim.webhook.webhookId === one.receiver.id ? "Lapsed" : "Settled")
      }
      expect(new Set(webhookIdsOf(yield* claims()))).toEqual(new Set([other.receiver.id]))
    })

    test("is in the trail, with who asked for it", function* ({ store }) {
      const origin = { requestId: "r1", keyId: ApiKeyId("k1") }
      yield* store.deleteProject(p1, { origin, at: 7 })
      const [row] = yield* store.history(undefined, everything)
      const expected = { action: "project_deleted", subject: p1, origin, at: 7, reason: undefined }
      expect(row).toMatchObject(expected)
    })

    test("happens once if several delete the project at the same time", function* ({ store }) {
      expect(yield* successesOf(4, () => store.deleteProject(p1, context))).toBe(1)
      for (const projectId of [nowhere, p1]) {
        const error = yield* Effect.flip(store.deleteProject(projectId, context))
        expect(error).toMatchObject({ _tag: "ProjectNotFound", projectId })
      }
    })

    test("happens once with an idempotency key, whatever was created since", function* ({ store }) {
      const keyed = { ...context, idempotency: idempotency() }
      yield* store.deleteProject(p1, keyed)
      expect(isReplayedResponse(yield* store.deleteProject(p1, keyed))).toBe(true)
      yield* store.createProject(p1, context)
      expect(isReplayedResponse(yield* store.deleteProject(p1, keyed))).toBe(true)
      expect((yield* store.findProject(p1)).id).toBe(p1)
    })

    test("forgets the idempotency keys of its changes, and no others", function* ({ store }) {
      const [forgotten, kept] = [idempotency(), idempotency()]
      const isRepeated = (projectId: ProjectId, key: typeof kept) => {
        const granted = { ...change(projectId), userId: u3, endDate: in2027, idempotency: key }
        return Effect.map(store.grant(granted), isReplayedResponse)
      }
      yield* isRepeated(p1, forgotten)
      yield* isRepeated(p2, kept)
      yield* store.deleteProject(p1, context)
      expect(yield* store.recall(forgotten, p1)).toBeUndefined()
      yield* store.createProject(p1, context)
      expect(yield* isRepeated(p1, forgotten)).toBe(false)
      expect(yield* isRepeated(p1, forgotten)).toBe(true)
      expect(yield* isRepeated(p2, kept)).toBe(true)
    })

    transactional("is undone with a transaction of the host that fails", function* ({ store }) {
      yield* undone(store.deleteProject(p1, context))
      expect(yield* store.findProject(p1)).toMatchObject({ memberships: 2, webhooks: 1 })
      expect(yield* claims()).not.toEqual([])
    })
  })
}
