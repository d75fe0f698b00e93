/** Random sequences of changes, compared with a simple model. */

import { expect } from "@effect/vitest"
import { EndDate, MembershipStore, ProjectId, type UserId } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import { change, in2027, in2029, occasion, p1, p2, u1, u2, u3 } from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"

/** A project's end dates by user id. */
type Model = Map<UserId, EndDate>

type Store = MembershipStore["Service"]

interface Real {
  readonly run: <A, E>(use: (store: Store) => Effect.Effect<A, E>) => Promise<A>
}

type Command = fc.AsyncCommand<Model, Real>

const command = (text: string, run: (model: Model, real: Real) => Promise<void>): Command => ({
  check: () => true,
  run,
  toString: () => text,
})

const tagOf = <A>(effect: Effect.Effect<A, { readonly _tag: string }>) =>
  Effect.match(effect, { onSuccess: () => "done", onFailure: ({ _tag }) => _tag })

const grant = (userId: UserId, endDate: EndDate): Command =>
  command(`grant ${userId} ${endDate}`, async (model, { run }) => {
    await run((store) => store.grant({ ...change(p1), userId, endDate }))
    model.set(userId, endDate)
  })

const importAll = (dates: ReadonlyMap<UserId, EndDate>): Command =>
  command(`import ${JSON.stringify([...dates])}`, async (model, { run }) => {
    const memberships = [...dates].map(([userId, endDate]) => ({ userId, endDate }))
    await run((store) => store.import({ ...change(p1), memberships }))
    for (const [userId, endDate] of dates) model.set(userId, endDate)
  })

const extend = (userId: UserId, endDate: EndDate): Command =>
  command(`extend ${userId} ${endDate}`, async (model, { run }) => {
    const outcome = await run((store) => tagOf(store.extend({ ...change(p1), userId, endDate })))
    expect(outcome).toBe(model.has(userId) ? "done" : "MembershipNotFound")
    if (model.has(userId)) model.set(userId, endDate)
  })

const extendIf = (userId: UserId, endDate: EndDate, expectedEndDate: EndDate): Command =>
  command(`extend ${userId} ${endDate} if ${expectedEndDate}`, async (model, { run }) => {
    const extension = { ...change(p1), userId, endDate, expectedEndDate }
    const outcome = await run((store) => tagOf(store.extend(extension)))
    const current = model.get(userId)
    if (current === undefined) return expect(outcome).toBe("MembershipNotFound")
    expect(outcome).toBe(current === expectedEndDate ? "done" : "EndDateConflict")
    if (current === expectedEndDate) model.set(userId, endDate)
  })

const lengthen = (userId: UserId, endDate: EndDate): Command =>
  command(`extend ${userId} ${endDate} neverShorten`, async (model, { run }) => {
    const extension = { ...change(p1), userId, endDate, mode: "neverShorten" as const }
    const outcome = await run((store) => tagOf(store.extend(extension)))
    const current = model.get(userId)
    expect(outcome).toBe(current === undefined ? "MembershipNotFound" : "done")
    if (current !== undefined && current < endDate) model.set(userId, endDate)
  })

const extendAll = (endDate: EndDate, mode: "set" | "neverShorten"): Command =>
  command(`extendAll ${endDate} ${mode}`, async (model, { run }) => {
    const extended = await run((store) => store.extendAll({ ...change(p1), endDate, mode }))
    expect(extended).toMatchObject({ total: model.size })
    for (const [userId, current] of model) {
      if (mode === "set" || current < endDate) model.set(userId, endDate)
    }
  })

const end = (userId: UserId): Command =>
  command(`end ${userId}`, async (model, { run }) => {
    const outcome = await run((store) => tagOf(store.end({ ...change(p1), userId })))
    expect(outcome).toBe(model.delete(userId) ? "done" : "MembershipNotFound")
  })

const list = (after: UserId | undefined, limit: number): Command =>
  command(`list after ${after} limit ${limit}`, async (model, { run }) => {
    const page = await run((store) => store.list(p1, { after, limit }))
    const expected = [...model]
      .filter(([userId]) => after === undefined || userId > after)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .slice(0, limit)
    expect(page.map(({ endDate, userId }) => [userId, endDate])).toEqual(expected)
  })

const users = fc.constantFrom(u1, u2, u3)
const dates = fc.nat({ max: 3 }).map((years) => EndDate(in2027 + years * 31_536_000_000))

const commands = fc.commands(
  [
    fc.tuple(users, dates).map((args) => grant(...args)),
    fc.array(fc.tuple(users, dates)).map((entries) => importAll(new Map(entries))),
    fc.tuple(users, dates).map((args) => extend(...args)),
    fc.tuple(users, dates, dates).map((args) => extendIf(...args)),
    fc.tuple(users, dates).map((args) => lengthen(...args)),
    fc
      .tuple(dates, fc.constantFrom("set" as const, "neverShorten" as const))
      .map((args) => extendAll(...args)),
    users.map(end),
    fc
      .tuple(fc.option(users, { nil: undefined }), fc.integer({ min: 1, max: 3 }))
      .map((args) => list(...args)),
  ],
  { maxCommands: 60 },
)

/** Declares the tests. */
export const modelTests = ({ property }: StoreTests): void =>
  property(
    "behaves like a map from user ids to end dates, for any sequence of changes",
    commands,
    Effect.fnUntraced(function* (sequence: Iterable<Command>) {
      const store = yield* MembershipStore
      yield* store.createProject(p1, occasion)
      const run = Effect.runPromiseWith(yield* Effect.context())
      const real: Real = { run: (use) => run(use(store)) }
      yield* Effect.promise(() => fc.asyncModelRun(() => ({ model: new Map(), real }), sequence))
    }),
  )

/** A missing project. */
export const nowhere = ProjectId("nowhere")

/** A store with two projects. The first has two members. */
export const prepared = Effect.gen(function* () {
  const store = yield* MembershipStore
  yield* store.createProject(p1, occasion)
  yield* store.createProject(p2, occasion)
  yield* store.grant({ ...change(p1), userId: u1, endDate: in2027 })
  yield* store.grant({ ...change(p1), userId: u2, endDate: in2029 })
  return store
})

/** Returns a member's end date. */
export const endDateOf = Effect.fnUntraced(function* (userId: UserId, projectId = p1) {
  const store = yield* MembershipStore
  return (yield* store.find(projectId, userId)).endDate
})
