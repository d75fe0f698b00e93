/** Searches everywhere: screens, projects, members, webhooks and events. */

import type { ListedProject } from "@tenure/client"
import type { TargetedEvent, TargetedKeyboardEvent } from "preact"
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import { api } from "../lib/api.ts"
import { userId } from "../lib/ids.ts"
import { to } from "../lib/route.ts"
import { messageOf, useLoad, useSettled } from "./load.tsx"
import { toTab } from "./screen.tsx"

/** Something to go to or to do. */
export interface Found {
  readonly name: string
  /** Its kind. */
  readonly kind: string
  readonly action: string | (() => void)
}

interface Props {
  /** Entries for every place. */
  readonly commands: ReadonlyArray<Found>
  readonly projects: ReadonlyArray<ListedProject>
  /** The project on screen. */
  readonly project: string | undefined
  readonly close: () => void
}

const typingPause = 150

const maxMembers = 6

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

const screensOf = (project: string): ReadonlyArray<Found> =>
  (["overview", "members", "webhooks", "events", "settings"] as const).map((tab) => ({
    name: `${project}: ${tab}`,
    kind: "screen",
    action: toTab(project, tab),
  }))

/** Finds a project's members and webhooks. */
const findIn = async (
  project: string,
  text: string,
  signal: AbortSignal,
): Promise<ReadonlyArray<Found>> => {
  const [members, webhooks] = await Promise.all([
    userId.test(text)
      ? api.memberships.list({ project_id: project, prefix: text, limit: maxMembers }, { signal })
      : undefined,
    api.webhooks.health({ project_id: project }, { signal }),
  ])
  return [
    ...(members?.data ?? []).map(({ user_id }) => ({
      name: user_id,
      kind: `member of ${project}`,
      action: to("projects", project, "members", user_id),
    })),
    ...webhooks.data
      .filter(({ id, url }) => url.includes(text) || id === text)
      .map(({ id, url }) => ({
        name: url,
        kind: `webhook of ${project}`,
        action: to("projects", project, "webhooks", id),
      })),
  ]
}

/** Finds entries without the server. */
const findHere = (text: string, { commands, project, projects }: Props): ReadonlyArray<Found> => {
  const asked = text.toLowerCase()
  const known = [
    ...(project === undefined ? [] : screensOf(project)),
    ...projects.map(({ id }) => ({
      name: id,
      kind: "project",
      action: toTab(id, "overview"),
    })),
    ...commands,
  ]
  const events =
    project !== undefined && uuid.test(text)
      ? [{ name: text, kind: "event", action: to("projects", project, "events", text) }]
      : []
  return [...events, ...known.filter(({ name }) => name.toLowerCase().includes(asked))]
}

/** The dialog. */
export const Palette = (props: Props) => {
  const { close, project } = props
  const dialog = useRef<HTMLDialogElement>(null)
  const list = useRef<HTMLUListElement>(null)
  const [text, setText] = useState("")
  const [chosen, setChosen] = useState(0)
  const asked = useSettled(text.trim(), typingPause)
  const there = useLoad(
    async (signal) => (project === undefined || asked === "" ? [] : findIn(project, asked, signal)),
    asked,
  )
  const all = [...(there.value ?? []), ...findHere(text.trim(), props)].slice(0, 30)
  const current = Math.min(chosen, all.length - 1)
  // At once, because the next keystrokes are for the dialog.
  useLayoutEffect(() => dialog.current?.showModal(), [])
  useEffect(() => list.current?.children[current]?.scrollIntoView({ block: "nearest" }), [current])

  const run = (found: Found | undefined) => {
    if (found === undefined) return
    dialog.current?.close()
    if (typeof found.action === "string") location.hash = found.action
    else found.action()
  }
  const type = ({ currentTarget: { value } }: TargetedEvent<HTMLInputElement>) => {
    setText(value)
    setChosen(0)
  }
  const press = (event: TargetedKeyboardEvent<HTMLInputElement>) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0
    if (step === 0 && event.key !== "Enter") return
    event.preventDefault()
    if (step === 0) run(all[current])
    else setChosen((current + step + all.length) % Math.max(1, all.length))
  }
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Search"
      onClose={close}
      onClick={({ currentTarget, target }) => {
        if (target === currentTarget) currentTarget.close()
      }}
    >
      <input
        type="text"
        role="combobox"
        aria-label={project === undefined ? "Search" : `Search in ${project}, and everywhere`}
        aria-expanded="true"
        aria-controls="found"
        aria-activedescendant={all.length > 0 ? `found-${current}` : undefined}
        placeholder={
          project === undefined
            ? "A project, a screen…"
            : `A member, webhook or event of ${project}, a screen…`
        }
        spellcheck={false}
        value={text}
        onInput={type}
        onKeyDown={press}
      />
      <ul ref={list} id="found" role="listbox" aria-label="Found">
        {all.map((found, index) => (
          <li
            key={`${found.kind} ${found.name}`}
            id={`found-${index}`}
            role="option"
            aria-selected={index === current}
            onClick={() => run(found)}
            onPointerMove={() => setChosen(index)}
          >
            <span>{found.name}</span>
            <span>{found.kind}</span>
          </li>
        ))}
      </ul>
      {there.error !== undefined && <p class="bad">{messageOf(there.error)}</p>}
      {all.length === 0 && there.error === undefined && <p class="dim">Nothing is found.</p>}
    </dialog>
  )
}

const shortcuts = [
  ["⌘K, Ctrl K or /", "search"],
  ["g o", "overview"],
  ["g p", "projects"],
  ["g m", "members of the project"],
  ["g w", "webhooks of the project"],
  ["g e", "events of the project"],
  ["g a", "audit trail of the project"],
  ["j, k", "next and previous row"],
  ["?", "this list"],
] as const

/** The shortcut list. */
export const Shortcuts = ({ close }: { readonly close: () => void }) => {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} aria-labelledby="shortcuts" onClose={close}>
      <form method="dialog">
        <h2 id="shortcuts">Keyboard shortcuts</h2>
        <dl class="facts">
          {shortcuts.map(([keys, what]) => (
            <div key={keys}>
              <dt>
                <kbd>{keys}</kbd>
              </dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
        <div class="buttons">
          <button>Close</button>
        </div>
      </form>
    </dialog>
  )
}
