/** Loads data from the API, and shows progress and errors. */

import type { Page } from "@tenure/client"
import { type ComponentChildren, createContext } from "preact"
import { useContext, useEffect, useRef, useState } from "preact/hooks"
import { Time } from "./text.tsx"

/** The number of outages so far, for all screens: after each one, they load their data again. */
export const Outages = createContext(0)

/** Whether nothing can be loaded now, for all screens. */
export const Lost = createContext(false)

/** Data being loaded. An error keeps the previous value. */
export interface Loading<A> {
  readonly value?: A
  /** When the value was loaded, in ISO text. */
  readonly at?: string
  readonly error?: unknown
  readonly reload: () => void
}

/** Returns an error's message. */
export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)

/**
 * Loads something, and again when `key` changes or `reload` is called.
 *
 * @param everyMillis - how long after one answer to load again; by default, never
 */
export const useLoad = <A,>(
  load: (signal: AbortSignal) => Promise<A>,
  key = "",
  everyMillis?: number,
): Loading<A> => {
  const outages = useContext(Outages)
  const [turn, setTurn] = useState(0)
  const [state, setState] = useState<Omit<Loading<A>, "reload"> & { readonly key: string }>({ key })
  const current = useRef(load)
  current.current = load
  useEffect(() => {
    const controller = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const run = async (): Promise<void> => {
      try {
        const value = await current.current(controller.signal)
        if (!controller.signal.aborted) setState({ key, value, at: new Date().toISOString() })
      } catch (error) {
        if (!controller.signal.aborted) setState((before) => ({ ...before, key, error }))
      }
      if (everyMillis !== undefined && !controller.signal.aborted) {
        timer = setTimeout(run, everyMillis)
      }
    }
    void run()
    return () => {
      controller.abort()
      clearTimeout(timer)
    }
  }, [key, turn, everyMillis, outages])
  const reload = () => setTurn((before) => before + 1)
  // Another key's data is not shown.
  return state.key === key ? { ...state, reload } : { reload }
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
        As it was at <Time iso={props.at} /> UTC:
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

/** A page in a list, and how to change pages. */
interface Pages<Item> {
  readonly page: Loading<Page<Item>>
  /** Goes to the page before; `undefined` on the first one. */
  readonly back: (() => void) | undefined
  /** Goes to the next page; `undefined` on the last one. */
  readonly forth: (() => void) | undefined
}

/** Loads a list page by page: forwards by the API's cursors, backwards by earlier ones. */
export const usePages = <Item,>(
  load: (after: string | undefined, signal: AbortSignal) => Promise<Page<Item>>,
  key = "",
): Pages<Item> => {
  const [position, setPosition] = useState<{
    readonly key: string
    readonly cursors: ReadonlyArray<string>
  }>({ key, cursors: [] })
  const cursors = position.key === key ? position.cursors : []
  const after = cursors.at(-1)
  const page = useLoad((signal) => load(after, signal), JSON.stringify([key, cursors]))
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
  readonly children: (items: ReadonlyArray<Item>) => ComponentChildren
}) {
  const { back, forth, page } = props.of
  return (
    <>
      <Loaded from={page}>{({ data }) => props.children(data)}</Loaded>
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
