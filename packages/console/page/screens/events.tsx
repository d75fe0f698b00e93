/** A project's events, newest first, and live. */

import { type FeedEvent, isTenureError } from "@tenure/client"
import { useEffect, useState } from "preact/hooks"
import { api } from "../lib/api.ts"
import { useSees } from "../lib/identity.ts"
import { to } from "../lib/route.ts"
import { SearchField } from "../parts/fields.tsx"
import { afterwards, Problem } from "../parts/load.tsx"
import { Empty, Fold, ProjectScreen, ShortId, Table } from "../parts/screen.tsx"
import { EventData } from "../parts/sensitive.tsx"
import { Ago, Time } from "../parts/text.tsx"

// The most events per request.
const pageSize = 50

// The most new events per request.
const maxNew = 100

// The most events on screen while following.
const maxShown = 500

// The most seconds a request waits for new events.
const patience = "20"

// How long to wait after a failure, and from one request for new events to the next, in milliseconds.
const pause = 3000

// Permanent errors.
const lasting = ["VALIDATION_ERROR", "FORBIDDEN", "PROJECT_NOT_FOUND"] as const

/** The cursor after the oldest event. */
const start = "start"

interface Shown {
  /** Newest first; `undefined` until they are known. */
  readonly events?: ReadonlyArray<FeedEvent>
  /** The cursor for older events. */
  readonly older: string
  readonly error?: unknown
}

const withoutRepetitions = (events: ReadonlyArray<FeedEvent>): ReadonlyArray<FeedEvent> => [
  ...new Map(events.map((event) => [event.id, event])).values(),
]

/** Adds new events, and drops the oldest above the limit: they can be loaded again. */
const withNew = (data: ReadonlyArray<FeedEvent>, { events = [], older }: Shown): Shown => {
  const all = withoutRepetitions([...data.toReversed(), ...events])
  const last = all[maxShown - 1]
  return last === undefined || all.length === maxShown
    ? { events: all, older }
    : { events: all.slice(0, maxShown), older: last.id }
}

/** Shows the latest events, and follows new ones. Returns a function to stop. */
const follow = (
  project: string,
  show: (change: (before: Shown) => Shown) => void,
): (() => void) => {
  const controller = new AbortController()
  const { signal } = controller
  let stop: (() => void) | undefined
  const later = (millis: number, then: () => void) => {
    if (!signal.aborted) stop = afterwards(millis, then)
  }
  const fail = (error: unknown, again: () => void) => {
    if (signal.aborted) return
    show((before) => ({ ...before, error }))
    if (lasting.some((code) => isTenureError(error, code))) return
    later(pause, again)
  }
  const wait = async (after: string): Promise<void> => {
    const began = performance.now()
    try {
      const input = { project_id: project, after, limit: maxNew, wait: patience }
      const { data, next } = await api.events.list(input, { signal })
      show((before) => withNew(data, before))
      later(Math.max(0, began + pause - performance.now()), () => void wait(next))
    } catch (error) {
      fail(error, isTenureError(error, "CURSOR_EXPIRED") ? begin : () => void wait(after))
    }
  }
  const begin = async (): Promise<void> => {
    try {
      // From here on, so that none is missed between the two.
      const { next } = await api.events.list({ project_id: project }, { signal })
      const input = { project_id: project, order: "newest" as const, limit: pageSize }
      const latest = await api.events.list(input, { signal })
      show(() => ({ events: latest.data, older: latest.next }))
      void wait(next)
    } catch (error) {
      fail(error, () => void begin())
    }
  }
  void begin()
  return () => {
    controller.abort()
    stop?.()
  }
}

const useEvents = (project: string, isLive: boolean) => {
  const [shown, setShown] = useState<Shown>({ older: start })
  useEffect(() => {
    if (!isLive) return undefined
    return follow(project, setShown)
  }, [project, isLive])
  const loadOlder = async () => {
    try {
      const input = { project_id: project, order: "newest" as const, limit: pageSize }
      const { data, next } = await api.events.list({ ...input, after: shown.older })
      setShown(({ events = [] }) => ({
        events: withoutRepetitions([...events, ...data]),
        older: next,
      }))
    } catch (error) {
      setShown((before) => ({ ...before, error }))
    }
  }
  return { ...shown, loadOlder }
}

const textOf = (data: unknown, name: string): string | null => {
  const found: unknown =
    typeof data === "object" && data !== null ? Reflect.get(data, name) : undefined
  return typeof found === "string" ? found : null
}

const Row = (props: { readonly project: string; readonly of: FeedEvent }) => {
  const { of, project } = props
  const [isOpen, setOpen] = useState(false)
  const maySee = useSees("operator")
  const user = textOf(of.data, "user_id")
  // Beside a pause, it would read as the pause's own end.
  const end = of.type === "membership.paused" ? null : textOf(of.data, "end_date")
  return (
    <>
      <tr>
        <td class="long">
          {maySee && <Fold isOpen={isOpen} label="Data" onClick={() => setOpen(!isOpen)} />}
          {of.type}
        </td>
        <td>
          <Time iso={of.timestamp} isExact />
        </td>
        <td class="long">
          {user === null ? (
            of.type.startsWith("memberships.") && <span class="dim">all members</span>
          ) : (
            <a href={to("projects", project, "members", user)}>{user}</a>
          )}
        </td>
        <td>
          {end !== null && (
            <>
              <span class="dim">until</span> <Time iso={end} />
            </>
          )}
        </td>
        <td class="dim spare">
          <Ago iso={of.timestamp} />
        </td>
        <td class="spare">
          <ShortId id={of.id} {...(maySee && { href: to("projects", project, "events", of.id) })} />
        </td>
      </tr>
      {isOpen && (
        <tr class="more">
          <td colSpan={6}>
            <EventData project={project} id={of.id} isAsked />
            <a href={to("projects", project, "events", of.id)}>The event and its deliveries</a>
          </td>
        </tr>
      )}
    </>
  )
}

/** The events. */
export const EventsScreen = ({ project }: { readonly project: string }) => {
  const [text, setText] = useState("")
  const [isLive, setLive] = useState(true)
  const { error, events, loadOlder, older } = useEvents(project, isLive)
  if (events === undefined) {
    return (
      <ProjectScreen project={project} tab="events">
        {error === undefined ? <p class="dim">Loading…</p> : <Problem error={error} />}
      </ProjectScreen>
    )
  }
  const asked = text.trim()
  const found = events.filter(
    ({ data, id, type }) =>
      type.includes(asked) || id === asked || textOf(data, "user_id")?.startsWith(asked) === true,
  )
  return (
    <ProjectScreen
      project={project}
      tab="events"
      actions={
        <button type="button" aria-pressed={isLive} onClick={() => setLive(!isLive)}>
          {isLive ? "Live: pause" : "Paused: go on"}
        </button>
      }
    >
      <div class="filters" role="search">
        <SearchField
          label="Filter those on screen by type, member or id"
          placeholder="Type, member or id"
          value={text}
          onType={setText}
        />
        <span class="dim">
          {asked === "" ? "" : `${found.length} of the `}
          {events.length} latest
        </span>
      </div>
      {error !== undefined && <Problem error={error} />}
      {events.length === 0 && (
        <Empty
          says="No event yet: changes of memberships are events, and what you publish."
          line={`npx tenure trigger payment.completed --project ${project}`}
        />
      )}
      {found.length > 0 && (
        <Table label="Events" columns={["Type", "Time (UTC)", "Member", "New end (UTC)", "", "Id"]}>
          {found.map((event) => (
            <Row key={event.id} project={project} of={event} />
          ))}
        </Table>
      )}
      {events.length > 0 && found.length === 0 && <p class="dim">No event on screen matches.</p>}
      {older !== start && (
        <div class="turn">
          <button type="button" onClick={() => void loadOlder()}>
            Older
          </button>
        </div>
      )}
    </ProjectScreen>
  )
}
