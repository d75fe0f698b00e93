/** The feed in memory. A position is the number of events stored before it. */

import {
  CursorExpired,
  type Event,
  type EventId,
  type FeedEvent,
  type FeedPage,
  type FeedPageSize,
  type FeedStart,
  type FeedStore,
  type LatestEvents,
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

  const latestOf = (
    projectId: ProjectId,
    before: EventId | undefined,
    size: FeedPageSize,
  ): LatestEvents => {
    const project = state.projects.get(projectId)
    const found: Array<Event> = []
    let isBefore = before === undefined
    for (const { event, project: owner } of state.events.newestFirst()) {
      if (found.length > size.events) break
      if (owner !== project || event.projectId !== projectId) continue
      if (isBefore) found.push(event)
      else isBefore = event.id === before
    }
    const events = found.slice(0, fitting(found, size))
    return { events, isLast: events.length === found.length }
  }

  return {
    latest: (projectId, before, size) =>
      Effect.suspend(() =>
        state.projects.has(projectId)
          ? Effect.succeed(latestOf(projectId, before, size))
          : Effect.fail(new ProjectNotFound({ projectId })),
      ),
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
