/** The members of these tests, all kinds of changes to them, and what changes write. */

import {
  type Change,
  EventId,
  MembershipStore,
  type Metadata,
  Millis,
  ProjectId,
  type ProjectSettings,
  TimeZone,
  type UserId,
  defaultProjectSettings,
  noMetadata,
  projectChanges,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Fixture from "../../support/fixtures.ts"
import { deliveriesOf } from "../outbox/steps.ts"
import { addWebhook, createProjects, dayMillis } from "../steps.ts"

const { change, draft, in2027, in2028, in2029, longAgo, p1, u1, u2, u3 } = Fixture

type Store = MembershipStore["Service"]

/** A missing project. */
export const nowhere = ProjectId("nowhere")

/** A store with two projects. The first has two members. */
export const prepared = Effect.gen(function* () {
  yield* createProjects
  const store = yield* MembershipStore
  yield* store.grant({ ...change(p1), userId: u1, endDate: in2027 })
  yield* store.grant({ ...change(p1), userId: u2, endDate: in2029 })
  return store
})

/** Returns a member's end date. */
export const endDateOf = Effect.fnUntraced(function* (userId: UserId, projectId = p1) {
  const store = yield* MembershipStore
  return (yield* store.find(projectId, userId)).endDate
})

export const gold: Metadata = { note: `"quoted", {braced} and \\ '`, plan: "gold" }

/** The first page, large enough for all rows or memberships. */
export const everything = { userId: undefined, limit: 1000 } as const

/** A kind of change to a project that has `prepared` members, and a bulk extension. */
type Kind = readonly [
  name: string,
  make: (store: Store, change: Change) => Effect.Effect<unknown, { readonly _tag: string }>,
]

export const datingChanges: ReadonlyArray<Kind> = [
  ["a grant", (store, by) => store.grant({ ...by, userId: u3, endDate: in2028 })],
  ["a grant to a member", (store, by) => store.grant({ ...by, userId: u1, endDate: in2029 })],
  [
    "an import",
    (store, by) => store.import({ ...by, memberships: [{ userId: u3, endDate: in2027 }] }),
  ],
  ["an extension", (store, by) => store.extend({ ...by, userId: u1, endDate: in2028 })],
  ...(["set", "neverShorten"] as const).map((mode): Kind => [
    `a bulk extension by ${mode}`,
    (store, by) => store.extendAll({ ...by, bulk: { endDate: in2028, mode } }),
  ]),
  [
    "a bulk extension by a duration",
    (store, by) =>
      store.extendAll({ ...by, bulk: { mode: "extendBy", by: Millis(3 * dayMillis) } }),
  ],
  ["an ending", (store, by) => store.end({ ...by, userId: u2 })],
]

/** Further changes of one or two memberships. */
const otherChanges: ReadonlyArray<Kind> = [
  [
    "a grant to somebody absent",
    (store, by) => store.grantIfAbsent({ ...by, userId: u3, endDate: in2028, isFinal: true }),
  ],
  [
    "a change of metadata",
    (store, by) => store.setMetadata({ ...by, userId: u1, expected: noMetadata, metadata: gold }),
  ],
  [
    "a move",
    (store, by) => {
      const moved = { endDate: in2027, metadata: noMetadata }
      const expected = { from: moved, to: undefined }
      return store.move({ ...by, ...moved, userId: u1, to: u3, expected, granted: draft(p1) })
    },
  ],
  ["an erasure", (store, by) => store.erase({ ...by, userId: u1 })],
  [
    "a pause",
    (store, by) =>
      store.pause({ ...by, userId: u1, until: undefined, expected: { endDate: in2027 } }),
  ],
]

/** Undoes the last bulk extension. */
const undoing: Kind = [
  "the undoing of a bulk extension",
  Effect.fnUntraced(function* (store, by) {
    const [last] = yield* store.bulkExtensions(p1, { after: undefined, limit: 1 })
    const bulkExtensionId = last?.id ?? EventId("")
    return yield* store.undoBulkExtension({ ...by, bulkExtensionId, madeAfter: longAgo })
  }),
]

/** Changes a project's settings. */
export const changeSettings = (
  store: Store,
  { event: _, ...by }: Change,
  patch: Partial<ProjectSettings>,
  expected: ProjectSettings = defaultProjectSettings,
) => {
  const settings = { ...expected, ...patch }
  const changes = projectChanges(expected, settings)
  return store.updateProject({ ...by, expected, settings, changes })
}

const changesOfProjects: ReadonlyArray<Kind> = [
  ["the creation of a project", (store, by) => store.createProject(nowhere, by)],
  ["the creation of a project that exists", (store, by) => store.createProject(p1, by)],
]

const settingChange: Kind = [
  "a change of a project's settings",
  (store, by) => changeSettings(store, by, { timeZone: TimeZone("Europe/Berlin") }),
]

/** All changes that are possible at a store. */
export const changesAt = ({ settlesAtOnce }: { readonly settlesAtOnce: boolean }) => [
  ...datingChanges,
  ...otherChanges,
  ...(settlesAtOnce ? [] : [undoing]),
  ...changesOfProjects,
  settingChange,
]

/** Returns how many audit rows and deliveries a kind writes. */
export const writesOf = (name: string): readonly [rows: number, deliveries: number] => {
  if (name === settingChange[0]) return [1, 0]
  if (changesOfProjects.some(([project]) => project === name)) return [0, 0]
  return name === "a move" ? [2, 2] : [1, 1]
}

/** Adds a webhook to a project, and returns a way to read everything that a change in it writes from then on. */
export const observe = Effect.fnUntraced(function* (projectId: ProjectId = p1) {
  const store = yield* MembershipStore
  const webhook = yield* addWebhook(projectId)
  const history = store.history(projectId, everything)
  const before = new Set((yield* history).map(({ cursor }) => cursor))
  return Effect.all({
    memberships: store.list(projectId, { after: undefined, limit: 1000 }),
    rows: Effect.map(history, (rows) => rows.filter(({ cursor }) => !before.has(cursor))),
    deliveries: deliveriesOf(webhook),
  })
})
