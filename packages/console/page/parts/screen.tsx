/** A screen: its place, title and contents. */

import type { ComponentChildren } from "preact"
import { useContext, useEffect, useRef, useState } from "preact/hooks"
import { useSees } from "../lib/identity.ts"
import { to } from "../lib/route.ts"
import { Announce } from "./action.tsx"
import { Icon } from "./text.tsx"

/** A link to a screen above, and its name. */
type Crumb = readonly [name: string, href: string]

// The first screen leaves the focus to the browser.
let hasFocused = false

interface ScreenProps {
  /** The displayed object's name. */
  readonly title: string
  /** Text after the name, such as the path in a URL. */
  readonly rest?: string | undefined
  /** The part on screen, for the window's title and for screen readers. */
  readonly part?: string | undefined
  readonly above?: ReadonlyArray<Crumb>
  /** Facts below the title. */
  readonly sub?: ComponentChildren
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}

/** A screen. Screen readers begin at its title. */
export const Screen = (props: ScreenProps) => {
  const { above = [], part, rest, sub, title } = props
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = [...(part === undefined ? [] : [part]), title, "Tenure"].join(" – ")
    if (hasFocused) heading.current?.focus()
    hasFocused = true
  }, [title, part])
  return (
    <main id="main">
      {above.length > 0 && (
        <nav class="crumbs" aria-label="Above">
          {above.map(([name, href]) => (
            <a key={href} href={href}>
              {name}
            </a>
          ))}
        </nav>
      )}
      <div class="head">
        <div>
          <h1 ref={heading} tabIndex={-1}>
            {title}
            {rest !== undefined && <small>{rest}</small>}
            {part !== undefined && <span class="sr"> {part}</span>}
          </h1>
          {sub !== undefined && <div class="sub">{sub}</div>}
        </div>
        <div class="buttons">{props.actions}</div>
      </div>
      {props.children}
    </main>
  )
}

const tabs = ["overview", "members", "webhooks", "events", "audit", "settings"] as const

type Tab = (typeof tabs)[number]

const titleOf = (tab: Tab): string => tab.replace(/^./, (first) => first.toUpperCase())

/** Returns the address for a project's part. */
export const toTab = (project: string, tab: Tab): string =>
  tab === "overview" ? to("projects", project) : to("projects", project, tab)

/** Returns the address for members in a state. */
export const toMembers = (
  project: string,
  kind: "active" | "overdue" | "soon" | "paused" | "expired",
): string => `${to("projects", project, "members")}?${kind}`

/** A screen in a project: a part or, with a title, an object in a part. */
export const ProjectScreen = (
  props: Omit<ScreenProps, "title" | "part" | "above"> & {
    readonly project: string
    readonly tab: Tab
    readonly title?: string
  },
) => {
  const { children, project, tab, title, ...rest } = props
  const maySeeAudit = useSees("operator")
  if (title !== undefined) {
    const above: ReadonlyArray<Crumb> = [
      [project, toTab(project, "overview")],
      [titleOf(tab), toTab(project, tab)],
    ]
    return (
      <Screen {...rest} title={title} above={above}>
        {children}
      </Screen>
    )
  }
  return (
    <Screen {...rest} title={project} part={titleOf(tab)}>
      <nav class="tabs" aria-label="Project">
        {tabs
          .filter((one) => one !== "audit" || maySeeAudit)
          .map((one) => (
            <a key={one} href={toTab(project, one)} aria-current={one === tab ? "page" : undefined}>
              {titleOf(one)}
            </a>
          ))}
      </nav>
      {children}
    </Screen>
  )
}

/** A column. */
interface Column {
  readonly name: string
  readonly isNumber?: boolean
  /** Sorts by this column; missing if sorting has no effect. */
  readonly onSort?: (() => void) | undefined
  readonly isSorted?: boolean
}

const Head = ({ of }: { readonly of: string | Column }) => {
  const { isNumber, isSorted, name, onSort }: Column = typeof of === "string" ? { name: of } : of
  if (name === "") return <td />
  const shown = isSorted === true ? `${name} ↑` : name
  return (
    <th
      scope="col"
      class={isNumber === true ? "number" : undefined}
      aria-sort={isSorted === true ? "ascending" : undefined}
    >
      {onSort === undefined ? (
        shown
      ) : (
        <button type="button" onClick={onSort}>
          {shown}
        </button>
      )}
    </th>
  )
}

/** A table. On narrow screens, each row is two lines. */
export const Table = (props: {
  readonly label: string
  readonly columns: ReadonlyArray<string | Column>
  readonly children: ComponentChildren
}) => (
  <div class="scroll" tabIndex={0} role="region" aria-label={props.label}>
    <table class="list">
      <thead>
        <tr>
          {props.columns.map((column, index) => (
            <Head key={index} of={column} />
          ))}
        </tr>
      </thead>
      <tbody>{props.children}</tbody>
    </table>
  </div>
)

/** Copies text. */
export const Copy = ({ text, what }: { readonly text: string; readonly what: string }) => {
  const announce = useContext(Announce)
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setCopied(true)
      announce("Copied.")
    } catch {
      announce("The browser does not let this page copy.")
    }
  }
  return (
    <button
      type="button"
      class="plain"
      title={`Copy ${what}`}
      aria-label={`Copy ${what}`}
      onClick={copy}
    >
      <Icon of={isCopied ? "check" : "copy"} />
    </button>
  )
}

/** Returns a long id's end, because ids made at the same time begin alike. */
export const shortOf = (id: string): string => (id.length > 12 ? `…${id.slice(-8)}` : id)

/** An id's short form, perhaps as a link, and a button to copy it. */
export const ShortId = ({ href, id }: { readonly id: string; readonly href?: string }) => {
  const short = shortOf(id)
  return (
    <span class="id">
      {href === undefined ? (
        <code title={id}>{short}</code>
      ) : (
        <a href={href} title={id}>
          <code>{short}</code>
        </a>
      )}
      <Copy text={id} what="the id" />
    </span>
  )
}

/** An empty list: a sentence, a button, and the same as a command. */
export const Empty = (props: {
  /** One sentence. */
  readonly says: string
  /** A shell command to copy. */
  readonly line?: string
  /** The button. */
  readonly children?: ComponentChildren
}) => (
  <div class="empty">
    <p>{props.says}</p>
    {props.children}
    {props.line !== undefined && (
      <span class="id">
        <code>{props.line}</code>
        <Copy text={props.line} what="the line" />
      </span>
    )}
  </div>
)

/** Folds out a row's details. */
export const Fold = (props: {
  readonly isOpen: boolean
  readonly label: string
  readonly onClick: () => void
}) => (
  <button
    type="button"
    class="plain fold"
    data-row
    aria-expanded={props.isOpen}
    aria-label={props.label}
    onClick={props.onClick}
  >
    <Icon of="fold" />
  </button>
)
