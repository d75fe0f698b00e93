/** Sensitive data, loaded only on request because each disclosure is audited. */

import type { ComponentChildren } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { api } from "../lib/api.ts"
import { Loaded, useLoad } from "./load.tsx"
import { Json } from "./text.tsx"

interface Props<A> {
  readonly what: string
  readonly load: (signal: AbortSignal) => Promise<A>
  readonly children: (value: A) => ComponentChildren
}

/** Replaces the button and takes its focus. */
const Shown = <A,>({ children, load }: Props<A>) => {
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => place.current?.focus(), [])
  return (
    <div ref={place} tabIndex={-1}>
      <Loaded from={useLoad(load)}>{children}</Loaded>
    </div>
  )
}

/** A button to load and show something. */
export const Hidden = <A,>(props: Props<A> & { readonly isAsked?: boolean }) => {
  const [isAsked, setAsked] = useState(props.isAsked ?? false)
  return isAsked ? (
    <Shown {...props} />
  ) : (
    <button type="button" class="small" onClick={() => setAsked(true)}>
      Show {props.what}
    </button>
  )
}

/** An event's data, on request. */
export const EventData = (props: {
  readonly project: string
  readonly id: string
  /** Whether somebody has asked already. */
  readonly isAsked?: boolean
}) => (
  <Hidden
    what="data"
    isAsked={props.isAsked ?? false}
    load={async (signal) =>
      (await api.events.get({ project_id: props.project, event_id: props.id }, { signal })).data
    }
  >
    {({ data }) => <Json value={data} />}
  </Hidden>
)
