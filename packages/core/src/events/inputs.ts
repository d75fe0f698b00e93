/** The inputs of the methods on the feed. */

import * as Result from "effect/Result"
import { type Noun, namesOf } from "../base/field-names.ts"
import { brandedText, projectId } from "../base/input.ts"
import { input } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import { EventId, eventTypesOption } from "./event.ts"
import { FeedCursor, type FeedStart } from "./feed-store.ts"

const cursor = brandedText(FeedCursor)

const feedStart: Setting.Setting<string, FeedStart> = {
  expected: cursor.expected,
  read: (given, field) =>
    given === "start" || given === "now" ? Result.succeed(given) : cursor.read(given, field),
}

const project = {
  /** The project whose events are read. */
  projectId,
}

const following = {
  /** An event's or a page's cursor; `"start"` for the oldest kept event. Default: now. */
  after: Setting.withDefault(feedStart, "now"),
  /** Only events with these types. Default: all. */
  types: eventTypesOption,
}

/** The most events in a page. */
export const maxEvents = 1000

const page = {
  /** The most events: 1 to 1,000. By default 100. */
  limit: Setting.withDefault(Setting.integer({ most: maxEvents }), 100),
}

/** The events to read. */
export const feedQuery = input(project, following)

/** The page to read. */
export const feedPage = input(project, {
  ...following,
  ...page,
  /** How long to wait when there is no event yet, in milliseconds, up to 20,000. By default 0. */
  waitMillis: Setting.withDefault(Setting.integer({ least: 0, most: 20_000 }), 0),
})

/** The latest events to read. */
export const latestPage = input(project, {
  ...page,
  /** The id of an event: those before it. By default, the latest of all. */
  before: Setting.optional(brandedText(EventId)),
})

const streamed = namesOf(feedQuery, { after: "cursor" })

/** The names of the arguments, by method. */
export const feedNames: Noun = {
  methods: {
    read: [
      namesOf(feedPage, {
        after: "cursor",
        waitMillis: ["wait", '"waitMillis", in milliseconds'],
        signal: true,
      }),
    ],
    latest: [namesOf(latestPage)],
    follow: [streamed],
    follower: [streamed],
    stream: [{ ...streamed, signal: true }],
    consume: [
      {
        projectId: true,
        types: true,
        limit: true,
        transaction: true,
        load: true,
        handle: true,
        save: true,
        signal: true,
      },
    ],
  },
}
