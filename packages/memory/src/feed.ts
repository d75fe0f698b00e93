/** The feed in memory. A position is the number of events stored before it. */

import {
  CursorExpired,
  type Event,
  type FeedEvent,
  type FeedPage,
  type FeedPageSize,
  type FeedStart,
  type FeedStore,
  type ProjectId,
  ProjectNotFound,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import type { State } from "./state.ts"

const utf8 = new TextEncoder()

/** Returns a cursor's position; `undefined` if the events after it are unknown or deleted. */
const placeOf = ({ cursors, events, history }: State, from: FeedStart): number | undefined => {
  const count = events.pushed()
  const oldest = Math.max(0, count - history)
  if (from === "start") return oldest
  if (from === "now") return count
  const place = cursors.read(from)
  return place !== undefined && place >= oldest && place <= count ? place : undefined
}

/** Returns the projects' events after a position, each with the position after it, oldest first. */
const eventsAfter = (
  { cursors, events, projects: existing }: State,
  place: number,
  projects: ReadonlySet<ProjectId>,
): ReadonlyArray<FeedEvent> => {
  const found: Array<FeedEvent> = []
  let at = events.pushed()
  for (const stored of events.newestFirst()) {
    if (at === place) break
    const { event, project } = stored
    const { projectId } = event
    if (projects.has(projectId) && existing.get(projectId) === project) {
      stored.cursor ??= cursors.print(at)
      found.push({ ...event, cursor: stored.cursor })
    }
    at--
  }
  return found.toReversed()
}

/** Returns how many events fit into a page: at least one, if there is one. */
const fitting = (found: ReadonlyArray<Event>, size: FeedPageSize): number => {
  let bytes = 0
  let count = 0
  for (const { body } of found) {
    if (count === size.events || bytes >= size.bytes) break
    bytes += utf8.encode(body).length
    count++
  }
  return count
}

/** Makes the store. */
export const makeMemoryFeedStore = (state: State): FeedStore["Service"] => {
  const pageAfter = (
    place: number,
    projects: ReadonlySet<ProjectId>,
    size: FeedPageSize,
  ): FeedPage => {
    const found = eventsAfter(state, place, projects)
    const count = fitting(found, size)
    const events = found.slice(0, count)
    const isLast = count === found.length
    const cursor = events.at(-1)?.cursor ?? state.cursors.print(state.events.pushed())
    return { events, cursor, isLast }
  }

  return {
    read: (projects, from, size) =>
      Effect.suspend((): Effect.Effect<FeedPage, ProjectNotFound | CursorExpired> => {
        if (!projects.some((projectId) => state.projects.has(projectId))) {
          return Effect.fail(new ProjectNotFound({ projectId: projects[0] }))
        }
        const place = placeOf(state, from)
        return place === undefined
          ? Effect.fail(new CursorExpired())
          : Effect.succeed(pageAfter(place, new Set(projects), size))
      }),
  }
}
