/** Loads data from the API, and shows progress and errors. */

import type { ListedProject, Page } from "@tenure/client"
import { type ComponentChildren, createContext } from "preact"
import { useContext, useEffect, useRef, useState } from "preact/hooks"
import { now } from "../lib/clock.ts"
import { Time } from "./text.tsx"

/** The number of outages so far. All screens reload their data after each one. */
export const Outages = createContext(0)

/** Reloads all screens' data, as after an outage. */
export const Renew = createContext<() => void>(() => {})

/** Whether nothing can be loaded now, for all screens. */
export const Lost = createContext(false)

/** Data being loaded. An error keeps the previous value. */
export interface Loading<A> {
  readonly value?: A
  /** When the value was loaded, in ISO text. */
  readonly at?: string
  readonly error?: unknown
  /** Whether the value is from an earlier request, with the next one on its way. */
  readonly isOld?: boolean
  readonly reload: () => void
}

/** The first projects, as the rail shows them, for screens to reload them. */
export const Projects = createContext<Loading<Page<ListedProject>>>({ reload: () => {} })

/** Returns an error's message. */
export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)

/** Calls a function when the page is shown again. Returns a function to stop this. */
const onceShown = (then: () => void): (() => void) => {
  const look = () => {
    if (document.hidden) return
    stop()
    then()
  }
  const stop = () => document.removeEventListener("visibilitychange", look)
  document.addEventListener("visibilitychange", look)
  return stop
}

/**
 * Calls a function after a while, or later, when the page is shown again: hidden pages ask for nothing.
 * Returns a function to stop this.
 */
export const afterwards = (millis: number, then: () => void): (() => void) => {
  let stop = () => clearTimeout(timer)
  const timer = setTimeout(() => {
    if (document.hidden) stop = onceShown(then)
    else then()
  }, millis)
  return () => stop()
}

interface LoadOptions {
  /** How long after one answer to load again, in milliseconds; by default, never. */
  readonly everyMillis?: number
  /** Whether to show the previous key's value until the next is there. */
  readonly isKept?: boolean
}

/** Loads something, and again when `key` changes or `reload` is called. */
export const useLoad = <A,>(
  load: (signal: AbortSignal) => Promise<A>,
  key = "",
  { everyMillis, isKept = false }: LoadOptions = {},
): Loading<A> => {
  const outages = useContext(Outages)
  const [turn, setTurn] = useState(0)
  const [state, setState] = useState<Omit<Loading<A>, "reload"> & { readonly key: string }>({ key })
  const current = useRef(load)
  current.current = load
  useEffect(() => {
    const controller = new AbortController()
    let stop = () => {}
    const run = async (): Promise<void> => {
      try {
        const value = await current.current(controller.signal)
        if (!controller.signal.aborted) setState({ key, value, at: new Date(now()).toISOString() })
      } catch (error) {
        if (!controller.signal.aborted) {
          setState((before) => ({ ...(before.key === key && before), key, error }))
        }
      }
      if (everyMillis !== undefined && !controller.signal.aborted) {
        stop = afterwards(everyMillis, () => void run())
      }
    }
    void run()
    return () => {
      controller.abort()
      stop()
    }
  }, [key, turn, everyMillis, outages])
  const reload = () => setTurn((before) => before + 1)
  if (state.key === key) return { ...state, reload }
  // Another key's data is shown only as long as it is said to be old.
  return isKept ? { ...state, isOld: true, reload } : { reload }
}

/** Returns a value when it has stayed the same for a while. */
export const useSettled = <A,>(value: A, millis: number): A => {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), millis)
    return () => clearTimeout(timer)
  }, [value, millis])
  return settled
}

/** Says why something cannot be done. */
export const Problem = ({ error }: { readonly error: unknown }) => (
  <p class="problem" role="alert">
    {messageOf(error)}
  </p>
)

/** Data at a point in time, possibly outdated. */
export const Known = (props: {
  /** In ISO text; `undefined` if nothing is known. */
  readonly at: string | undefined
  readonly isStale: boolean
  readonly children: ComponentChildren
}) => (
  <div class={props.isStale ? "stale" : undefined}>
    {props.isStale && props.at !== undefined && (
      <p>
        As it was at <Time iso={props.at} isExact /> UTC:
      </p>
    )}
    {props.children}
  </div>
)

/** Shows loaded data, or why it is missing. */
export function Loaded<A>(props: {
  readonly from: Loading<A>
  readonly children: (value: A) => ComponentChildren
}) {
  const { at, error, value } = props.from
  const isLost = useContext(Lost)
  return (
    <>
      {error !== undefined && <Problem error={error} />}
      {at !== undefined && value !== undefined && (
        <Known at={at} isStale={error !== undefined || isLost}>
          {props.children(value)}
        </Known>
      )}
      {error === undefined && value === undefined && <p class="dim">Loading…</p>}
    </>
  )
}

/** A page from the API. */
interface Listed<Item> {
  readonly data: ReadonlyArray<Item>
  /** The next page's cursor; `null` on the last. */
  readonly next: string | null
}

/** A page in a list, and how to change pages. */
interface Pages<Item> {
  readonly page: Loading<Listed<Item>>
  /** Goes to the page before; `undefined` on the first one. */
  readonly back: (() => void) | undefined
  /** Goes to the next page; `undefined` on the last one. */
  readonly forth: (() => void) | undefined
}

/** Loads a list page by page: forwards by the API's cursors, backwards by earlier ones. */
export const usePages = <Item,>(
  load: (after: string | undefined, signal: AbortSignal) => Promise<Listed<Item>>,
  key = "",
  isKept = false,
): Pages<Item> => {
  const [position, setPosition] = useState<{
    readonly key: string
    readonly cursors: ReadonlyArray<string>
  }>({ key, cursors: [] })
  const cursors = position.key === key ? position.cursors : []
  const after = cursors.at(-1)
  const page = useLoad((signal) => load(after, signal), JSON.stringify([key, cursors]), {
    isKept,
  })
  const move = (next: ReadonlyArray<string>) => setPosition({ key, cursors: next })
  const next = page.value?.next
  return {
    page,
    back: cursors.length === 0 ? undefined : () => move(cursors.slice(0, -1)),
    forth: typeof next === "string" ? () => move([...cursors, next]) : undefined,
  }
}

/** Shows a page, with buttons if there are several. */
export function Paged<Item>(props: {
  readonly of: Pages<Item>
  readonly children: (items: ReadonlyArray<Item>, next: string | null) => ComponentChildren
}) {
  const { back, forth, page } = props.of
  return (
    <>
      <div class={page.isOld === true ? "old" : undefined}>
        <Loaded from={page}>{({ data, next: rest }) => props.children(data, rest)}</Loaded>
      </div>
      {(back !== undefined || forth !== undefined) && (
        <nav class="turn" aria-label="Pages">
          <button type="button" disabled={back === undefined} onClick={back}>
            Previous
          </button>
          <button type="button" disabled={forth === undefined} onClick={forth}>
            Next
          </button>
        </nav>
      )}
    </>
  )
}
