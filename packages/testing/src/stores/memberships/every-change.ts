/** All kinds of changes to memberships, and what they write. */

import {
  type Change,
  EventId,
  MembershipStore,
  type Metadata,
  Millis,
  type ProjectId,
  noMetadata,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { draft, in2027, in2028, in2029, longAgo, p1, u1, u2, u3 } from "../../support/fixtures.ts"
import { deliveriesOf } from "../outbox/steps.ts"
import { addWebhook, dayMillis } from "../steps.ts"
import { nowhere } from "./model.ts"

type Store = MembershipStore["Service"]

export const gold: Metadata = { note: `"quoted", {braced} and \\ '`, plan: "gold" }

/** The first page, large enough for all rows or memberships. */
export const everything = { userId: undefined, limit: 1000 } as const

/** A kind of change to a project that has the members of `prepared`, and a bulk extension. */
type Kind = readonly [
  name: string,
  make: (store: Store, change: Change) => Effect.Effect<unknown, { readonly _tag: string }>,
]

/** Changes of end dates. */
export const datingChanges: ReadonlyArray<Kind> = [
  ["a grant", (store, change) => store.grant({ ...change, userId: u3, endDate: in2028 })],
  [
    "a grant to a member",
    (store, change) => store.grant({ ...change, userId: u1, endDate: in2029 }),
  ],
  [
    "an import",
    (store, change) => store.import({ ...change, memberships: [{ userId: u3, endDate: in2027 }] }),
  ],
  ["an extension", (store, change) => store.extend({ ...change, userId: u1, endDate: in2028 })],
  ...(["set", "neverShorten"] as const).map((mode): Kind => [
    `a bulk extension by ${mode}`,
    (store, change) => store.extendAll({ ...change, bulk: { endDate: in2028, mode } }),
  ]),
  [
    "a bulk extension by a duration",
    (store, change) =>
      store.extendAll({ ...change, bulk: { mode: "extendBy", by: Millis(3 * dayMillis) } }),
  ],
  ["an ending", (store, change) => store.end({ ...change, userId: u2 })],
]

/** Changes of one or two memberships that leave their end dates, or end them. */
const otherChanges: ReadonlyArray<Kind> = [
  [
    "a change of metadata",
    (store, change) =>
      store.setMetadata({ ...change, userId: u1, expected: noMetadata, metadata: gold }),
  ],
  [
    "a move",
    (store, change) => {
      const moved = { endDate: in2027, metadata: noMetadata }
      const expected = { from: moved, to: undefined }
      return store.move({ ...change, ...moved, userId: u1, to: u3, expected, granted: draft(p1) })
    },
  ],
  ["an erasure", (store, change) => store.erase({ ...change, userId: u1 })],
]

/** Undoes the last bulk extension. */
const undoing: Kind = [
  "the undoing of a bulk extension",
  Effect.fnUntraced(function* (store, change) {
    const [last] = yield* store.bulkExtensions(p1, { after: undefined, limit: 1 })
    const bulkExtensionId = last?.id ?? EventId("")
    return yield* store.undoBulkExtension({ ...change, bulkExtensionId, madeAfter: longAgo })
  }),
]

const projectChanges: ReadonlyArray<Kind> = [
  ["the creation of a project", (store, change) => store.createProject(nowhere, change)],
  ["the creation of a project that exists", (store, change) => store.createProject(p1, change)],
]

/** All changes that are possible at a store. */
export const changesAt = ({ settlesAtOnce }: { readonly settlesAtOnce: boolean }) => [
  ...datingChanges,
  ...otherChanges,
  ...(settlesAtOnce ? [] : [undoing]),
  ...projectChanges,
]

/** Returns how many audit rows and deliveries a kind of change writes. */
export const writesOf = (name: string): number =>
  name === "a move" ? 2 : projectChanges.some(([project]) => project === name) ? 0 : 1

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
