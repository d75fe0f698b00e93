/** A project's events, live. */

import { type FeedEvent, isTenureError } from "@tenure/client"
import type { TargetedSubmitEvent } from "preact"
import { useEffect, useState } from "preact/hooks"
import { api } from "../lib/api.ts"
import { useSees } from "../lib/identity.ts"
import { go, to } from "../lib/route.ts"
import { textOf } from "../parts/action.tsx"
import { Problem } from "../parts/load.tsx"
import { Empty, ProjectScreen, ShortId, Table } from "../parts/screen.tsx"
import { EventData } from "../parts/sensitive.tsx"
import { Time } from "../parts/text.tsx"

// The maximum number of events on screen. Older ones are removed.
const mostShown = 200

// The maximum number of events per request. The user decides about more: there may be millions.
const pageSize = 100

// How long to wait after a failure, in milliseconds.
const pause = 3000

/** The events to follow. */
interface Choice {
  readonly project: string
  /** Where to begin: with the oldest kept event, or now. */
  readonly isFromStart: boolean
  /** Types joined by commas; empty for all. */
  readonly types: string
  /** Whether it goes on. */
  readonly isLive: boolean
}

// Permanent errors.
const lasting = ["VALIDATION_ERROR", "FORBIDDEN", "PROJECT_NOT_FOUND"] as const

interface Followed {
  readonly events: ReadonlyArray<FeedEvent>
  readonly error?: unknown
  /** Loads the next page, if the user decides about it. */
  readonly loadMore?: () => void
}

/** Follows the feed until it is stopped, newest event first. */
const follow = (
  { isFromStart, project, types }: Choice,
  signal: AbortSignal,
  show: (change: (before: Followed) => Followed) => void,
): void => {
  const load = async (after: string | undefined): Promise<void> => {
    const input = {
      project_id: project,
      after,
      limit: pageSize,
      // The first answer is the place to go on from.
      wait: after === undefined ? "0" : "20",
      data: "false" as const,
      ...(types !== "" && { types }),
    }
    try {
      const { data, next } = await api.events.list(input, { signal })
      const hasMore = isFromStart && data.length === pageSize
      show(({ events }) => ({
        events: [...data.toReversed(), ...events].slice(0, mostShown),
        ...(hasMore && { loadMore: () => void load(next) }),
      }))
      if (!hasMore) void load(next)
    } catch (error) {
      if (signal.aborted) return
      show(({ events }) => ({ events, error }))
      if (lasting.some((code) => isTenureError(error, code))) return
      const from = isTenureError(error, "CURSOR_EXPIRED") ? "start" : after
      const timer = setTimeout(() => void load(from), pause)
      signal.addEventListener("abort", () => clearTimeout(timer))
    }
  }
  void load(isFromStart ? "start" : undefined)
}

const useFeed = (choice: Choice): Followed => {
  const [followed, setFollowed] = useState<Followed>({ events: [] })
  const { isFromStart, isLive, project, types } = choice
  useEffect(() => {
    if (!isLive) return undefined
    setFollowed({ events: [] })
    const controller = new AbortController()
    follow(choice, controller.signal, setFollowed)
    return () => controller.abort()
  }, [project, isFromStart, types, isLive])
  return followed
}

const Search = ({ project }: { readonly project: string }) => {
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const id = textOf(new FormData(event.currentTarget), "id")
    if (id !== "") go("projects", project, "events", id)
  }
  return (
    <form role="search" onSubmit={submit}>
      <input
        type="search"
        name="id"
        aria-label="Find an event by id"
        placeholder="Id of an event"
      />
      <button>Find</button>
    </form>
  )
}

/** The events. */
export const EventsScreen = ({ project }: { readonly project: string }) => {
  const [isFromStart, setFromStart] = useState(true)
  const [types, setTypes] = useState("")
  const [isLive, setLive] = useState(true)
  const { error, events, loadMore } = useFeed({ project, isFromStart, types, isLive })
  const maySee = useSees("operator")
  if (isTenureError(error, "PROJECT_NOT_FOUND"))
    return (
      <ProjectScreen project={project} tab="events">
        <Problem error={error} />
      </ProjectScreen>
    )
  return (
    <ProjectScreen
      project={project}
      tab="events"
      actions={
        <button type="button" onClick={() => setLive(!isLive)}>
          {isLive ? "Live: pause" : "Paused: go on"}
        </button>
      }
    >
      <div class="filters">
        {maySee && <Search project={project} />}
        <label>
          From{" "}
          <select
            value={isFromStart ? "start" : "now"}
            onChange={({ currentTarget: { value } }) => setFromStart(value === "start")}
          >
            <option value="start">the oldest that is kept</option>
            <option value="now">now</option>
          </select>
        </label>
        <label>
          Types{" "}
          <input
            placeholder="all"
            spellcheck={false}
            value={types}
            onChange={({ currentTarget: { value } }) => setTypes(value.replaceAll(/\s/g, ""))}
          />
        </label>
      </div>
      {error !== undefined && <Problem error={error} />}
      {loadMore !== undefined && (
        <p>
          There are later events.{" "}
          <button type="button" onClick={loadMore}>
            Show them
          </button>
        </p>
      )}
      {events.length === 0 ? (
        <Empty
          says="No event yet."
          line={`npx tenure trigger payment.completed --project ${project}`}
        />
      ) : (
        <Table label="Events" columns={["Type", "Time (UTC)", "Data", "Id"]}>
          {events.map(({ id, timestamp, type }) => (
            <tr key={id}>
              <td>{type}</td>
              <td>
                <Time iso={timestamp} isExact />
              </td>
              <td>
                {maySee ? <EventData project={project} id={id} /> : <span class="dim">–</span>}
              </td>
              <td>
                <ShortId id={id} {...(maySee && { href: to("projects", project, "events", id) })} />
              </td>
            </tr>
          ))}
        </Table>
      )}
      {events.length === mostShown && (
        <p class="dim">The newest {mostShown} of those that came while this screen is open.</p>
      )}
    </ProjectScreen>
  )
}
