/** Feeds that are wrong. */

import { CursorExpired, type FeedPage, FeedStore } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { mutantsOf } from "./Mutant.ts"

type Store = FeedStore["Service"]

/** Changes the pages that are read. */
const paging =
  (change: (page: FeedPage) => FeedPage) =>
  ({ read }: Store): Partial<Store> => ({
    read: (projects, from, size) => Effect.map(read(projects, from, size), change),
  })

const unlimited = 1_000_000

/** Feeds that are wrong. */
export const feed = mutantsOf(FeedStore, {
  "returns the newest events first": paging((page) => ({
    ...page,
    events: page.events.toReversed(),
  })),

  "skips the first event of a page": paging((page) => ({ ...page, events: page.events.slice(1) })),

  "skips an event after each page": ({ read }) => ({
    read: Effect.fnUntraced(function* (projects, from, size) {
      const page = yield* read(projects, from, size)
      const { cursor } = yield* read(projects, page.cursor, { ...size, events: 1 })
      return { ...page, cursor }
    }),
  }),

  "repeats the last event of a page": paging((page) => {
    const before = page.events.at(-2)
    return before === undefined ? page : { ...page, cursor: before.cursor }
  }),

  "says that every page is the last one": paging((page) => ({ ...page, isLast: true })),

  "gives all events of a page the place after it": paging((page) => ({
    ...page,
    events: page.events.map((event) => ({ ...event, cursor: page.cursor })),
  })),

  "does not return the bodies as they are": paging((page) => ({
    ...page,
    events: page.events.map((event) => ({ ...event, body: `${event.body} ` })),
  })),

  "begins at the oldest event in place of now": ({ read }) => ({
    read: (projects, from, size) => read(projects, from === "now" ? "start" : from, size),
  }),

  "begins now in place of at the oldest event": ({ read }) => ({
    read: (projects, from, size) => read(projects, from === "start" ? "now" : from, size),
  }),

  "reads the first project alone": ({ read }) => ({
    read: ([first], from, size) => read([first], from, size),
  }),

  "ends a page early that goes on from another": ({ read }) => ({
    read: (projects, from, size) =>
      read(projects, from, {
        ...size,
        events: from === "start" ? size.events : Math.max(2, size.events - 1),
      }),
  }),

  "judges a cursor before the project": ({ read }) => ({
    read: (projects, from, size) =>
      Effect.mapError(read(projects, from, size), (error) =>
        error._tag === "ProjectNotFound" && from !== "start" && from !== "now"
          ? new CursorExpired()
          : error,
      ),
  }),

  "returns as many events as there are": ({ read }) => ({
    read: (projects, from, size) => read(projects, from, { ...size, events: unlimited }),
  }),

  "returns as many bytes as there are": ({ read }) => ({
    read: (projects, from, size) => read(projects, from, { ...size, bytes: unlimited }),
  }),

  "goes on from now if a cursor has expired": ({ read }) => ({
    read: (projects, from, size) =>
      Effect.catchTag(read(projects, from, size), "CursorExpired", () =>
        Effect.catchTag(read(projects, "now", size), "CursorExpired", Effect.die),
      ),
  }),

  "dies of a text that is no cursor": ({ read }) => ({
    read: (projects, from, size) =>
      Effect.catchTag(read(projects, from, size), "CursorExpired", Effect.die),
  }),
})
