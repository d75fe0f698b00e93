/** The feed in memory. A place is the number of events that were stored before it. */

import type { Event } from "@tenure/core/Event"
import {
  Cursor,
  CursorExpired,
  type FeedEvent,
  type FeedPage,
  type FeedStore,
  type From,
  type PageSize,
} from "@tenure/core/FeedStore"
import { type ProjectId, ProjectNotFound } from "@tenure/core/Project"
import * as Effect from "effect/Effect"
import type * as State from "../State.ts"

const utf8 = new TextEncoder()

/** Returns the place of a cursor; `undefined` if the events after it are not known, or not kept. */
const placeOf = ({ epoch, events, history }: State.State, from: From): number | undefined => {
  const count = events.pushed()
  const oldest = Math.max(0, count - history)
  if (from === "start") return oldest
  if (from === "now") return count
  const [before, place = ""] = from.split(".")
  const isPlace = before === epoch && /^\d{1,15}$/.test(place)
  return isPlace && Number(place) >= oldest && Number(place) <= count ? Number(place) : undefined
}

/** Returns the events of some projects after a place, with their own places, oldest first. */
const eventsAfter = (
  { events, projects: existing }: State.State,
  place: number,
  projects: ReadonlySet<ProjectId>,
): ReadonlyArray<readonly [place: number, event: Event]> => {
  const found: Array<readonly [number, Event]> = []
  let at = events.pushed()
  for (const { event, project } of events.newestFirst()) {
    if (at === place) break
    const { projectId } = event
    if (projects.has(projectId) && existing.get(projectId) === project) found.push([at, event])
    at--
  }
  return found.toReversed()
}

/** Returns how many of the events fit into a page: at least one, if there is one. */
const fitting = (
  found: ReadonlyArray<readonly [place: number, event: Event]>,
  size: PageSize,
): number => {
  let bytes = 0
  let count = 0
  for (const [, { body }] of found) {
    if (count === size.events || bytes >= size.bytes) break
    bytes += utf8.encode(body).length
    count++
  }
  return count
}

/** Makes the store. */
export const make = (state: State.State): FeedStore["Service"] => {
  const cursorAt = (place: number): Cursor => Cursor(`${state.epoch}.${place}`)

  const pageAfter = (place: number, projects: ReadonlySet<ProjectId>, size: PageSize): FeedPage => {
    const found = eventsAfter(state, place, projects)
    const count = fitting(found, size)
    const events = found
      .slice(0, count)
      .map(([at, event]): FeedEvent => ({ ...event, cursor: cursorAt(at) }))
    const isLast = count === found.length
    const cursor = isLast ? cursorAt(state.events.pushed()) : events.at(-1)?.cursor
    return { events, cursor: cursor ?? cursorAt(place), isLast }
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
