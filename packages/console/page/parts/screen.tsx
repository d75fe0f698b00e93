/** A screen: its place, title and contents. */

import type { ComponentChildren } from "preact"
import { useEffect, useRef } from "preact/hooks"
import { useSees } from "../lib/identity.ts"
import { to } from "../lib/route.ts"

/** A link to a screen above, and its name. */
type Crumb = readonly [name: string, href: string]

// The first screen leaves the focus to the browser.
let hasFocused = false

/** A screen. Screen readers begin at its title. */
export const Screen = (props: {
  readonly title: string
  readonly above?: ReadonlyArray<Crumb>
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}) => {
  const { above = [], title } = props
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} – Tenure`
    if (hasFocused) heading.current?.focus()
    hasFocused = true
  }, [title])
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
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        <div class="buttons">{props.actions}</div>
      </div>
      {props.children}
    </main>
  )
}

const tabs = ["members", "webhooks", "events", "audit"] as const

type Tab = (typeof tabs)[number]

const titleOf = (tab: Tab): string => tab.replace(/^./, (first) => first.toUpperCase())

/** A screen in a project. */
export const ProjectScreen = (props: {
  readonly project: string
  readonly tab: Tab
  /** The part shown, if not everything. */
  readonly title?: string
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}) => {
  const { actions, children, project, tab, title } = props
  const maySeeAudit = useSees("operator")
  const above: ReadonlyArray<Crumb> = [
    ["Projects", to("projects")],
    [project, to("projects", project, "members")],
    ...(title === undefined ? [] : ([[tab, to("projects", project, tab)]] as const)),
  ]
  return (
    <Screen title={title ?? titleOf(tab)} above={above} actions={actions}>
      <nav class="tabs" aria-label="Project">
        {tabs
          .filter((one) => one !== "audit" || maySeeAudit)
          .map((one) => (
            <a
              key={one}
              href={to("projects", project, one)}
              aria-current={one === tab ? "page" : undefined}
            >
              {titleOf(one)}
            </a>
          ))}
      </nav>
      {children}
    </Screen>
  )
}

/** A table, scrollable on narrow screens. */
export const Table = (props: {
  readonly label: string
  readonly columns: ReadonlyArray<string>
  readonly isEmpty: boolean
  readonly empty: string
  readonly children: ComponentChildren
}) =>
  props.isEmpty ? (
    <p class="dim">{props.empty}</p>
  ) : (
    <div class="scroll" tabIndex={0} role="region" aria-label={props.label}>
      <table>
        <thead>
          <tr>
            {props.columns.map((column) =>
              column === "" ? <td key="actions" /> : <th key={column}>{column}</th>,
            )}
          </tr>
        </thead>
        <tbody>{props.children}</tbody>
      </table>
    </div>
  )
