/** Feeds that break a promise. */

import { type FeedPage, FeedStore } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { wrongStores } from "./wrong-store.ts"

const paging =
  (change: (page: FeedPage) => FeedPage) =>
  ({ read }: FeedStore["Service"]): Partial<FeedStore["Service"]> => ({
    read: (projects, from, size) => Effect.map(read(projects, from, size), change),
  })

const unlimited = 1_000_000

const nothing = { events: [], isLast: true }

export const wrongFeedStores = wrongStores("FeedStore", FeedStore, {
  "returns the events of a project, oldest first, as they were published": paging((page) => ({
    ...page,
    events: page.events.slice(1),
  })),
  "returns the events of changes": ({ read }) => ({
    read: (projects, from, size) => read(projects, from === "start" ? "now" : from, size),
  }),
  "returns only what comes later from now on": ({ read }) => ({
    read: (projects, from, size) => read(projects, from === "now" ? "start" : from, size),
  }),
  "returns no more events than asked for, and none that is already in another page": paging(
    (page) => ({ ...page, isLast: true }),
  ),
  "returns about as many bytes as asked for, and always an event": ({ read }) => ({
    read: (projects, from, size) => read(projects, from, { ...size, bytes: unlimited }),
  }),
  "returns the events of several projects in one order, in pages too": ({ read }) => ({
    read: (projects, from, size) => read(projects, from, { ...size, events: unlimited }),
  }),
  "returns the latest events of a project, newest first, page after page": ({ latest }) => ({
    latest: (projectId, _, size) => latest(projectId, undefined, size),
  }),
  "returns about as many bytes as asked for, and always an event of the latest": ({ latest }) => ({
    latest: (projectId, before, size) => latest(projectId, before, { ...size, bytes: unlimited }),
  }),
  "returns none before an event that is not kept, or of another project": ({ latest }) => ({
    latest: (projectId, before, size) =>
      Effect.flatMap(latest(projectId, before, size), (page) =>
        page.events.length > 0 ? Effect.succeed(page) : latest(projectId, undefined, size),
      ),
  }),
  "fails for a project that does not exist, and has none at first": ({ latest }) => ({
    latest: (...asked) =>
      Effect.catchTag(latest(...asked), "ProjectNotFound", () => Effect.succeed(nothing)),
  }),
  "fails for projects that do not exist": ({ read }) => ({
    read: ([first], from, size) => read([first], from, size),
  }),
})
