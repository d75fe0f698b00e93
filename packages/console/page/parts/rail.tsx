/** The rail: the current place, the projects, and the user's own menu. */

import type { Identity, ListedProject } from "@tenure/client"
import { useContext, useEffect, useRef, useState } from "preact/hooks"
import { signOut } from "../lib/api.ts"
import { covers, seesAll } from "../lib/identity.ts"
import { hasLetters, setLetters } from "../lib/keyboard.ts"
import { type Place, to } from "../lib/route.ts"
import { Announce } from "./action.tsx"
import { SchemeChoice } from "./environment.tsx"
import { messageOf } from "./load.tsx"
import { toTab } from "./screen.tsx"
import { Icon } from "./text.tsx"

/** Whether users sign in here, and not in the host. */
export const hasSignIn = "signIn" in document.documentElement.dataset

const links = (who: Identity) => [
  ...(seesAll(who) ? [["Overview", "home", to()] as const] : []),
  ...(covers(who, "admin") ? [["API keys", "key", to("keys")] as const] : []),
  ...(seesAll(who) ? [["Audit", "audit", to("audit")] as const] : []),
]

const SignOut = () => {
  const announce = useContext(Announce)
  const signOutAndReload = async () => {
    try {
      await signOut()
      location.reload()
    } catch (fault) {
      announce(`You are still signed in. ${messageOf(fault)}`)
    }
  }
  return (
    <button type="button" onClick={signOutAndReload}>
      Sign out
    </button>
  )
}

const roleOf = ({ read_only, role }: Identity): string => (read_only ? `${role}, read-only` : role)

const UserMenu = ({ help, who }: { readonly who: Identity; readonly help: () => void }) => {
  const menu = useRef<HTMLDetailsElement>(null)
  const [isOn, setOn] = useState(hasLetters)
  useEffect(() => {
    const leave = ({ target }: Event) => {
      if (target instanceof Node && menu.current?.contains(target) === false) {
        menu.current.open = false
      }
    }
    const escape = ({ key }: KeyboardEvent) => {
      if (key !== "Escape" || menu.current?.open !== true) return
      menu.current.open = false
      menu.current.querySelector("summary")?.focus()
    }
    addEventListener("click", leave)
    addEventListener("focusin", leave)
    addEventListener("keydown", escape)
    return () => {
      removeEventListener("click", leave)
      removeEventListener("focusin", leave)
      removeEventListener("keydown", escape)
    }
  }, [])
  return (
    <details ref={menu} class="menu">
      <summary title={who.key_id}>
        <span class="initial" aria-hidden="true">
          {who.role.slice(0, 1).toUpperCase()}
        </span>
        {roleOf(who)}
      </summary>
      <div>
        <label>
          Colours <SchemeChoice />
        </label>
        <label>
          Single-key shortcuts
          <input
            type="checkbox"
            checked={isOn}
            onChange={({ currentTarget: { checked } }) => {
              setLetters(checked)
              setOn(checked)
            }}
          />
        </label>
        <button type="button" onClick={help}>
          Keyboard shortcuts <kbd>?</kbd>
        </button>
        {hasSignIn && <SignOut />}
      </div>
    </details>
  )
}

/** The rail. */
export const Rail = (props: {
  readonly place: Place
  readonly who: Identity
  /** `undefined` until they are known. */
  readonly projects: ReadonlyArray<ListedProject> | undefined
  readonly hasMore: boolean
  readonly find: () => void
  readonly help: () => void
}) => {
  const { find, hasMore, help, place, projects = [], who } = props
  const [isOpen, setOpen] = useState(false)
  const here = to(...place)
  useEffect(() => setOpen(false), [here])
  return (
    <header class={isOpen ? "rail open" : "rail"}>
      <div class="bar">
        <a class="brand" href={to()}>
          Tenure
        </a>
        <button type="button" class="plain narrow-only" aria-label="Search" onClick={find}>
          <Icon of="search" />
        </button>
        <button
          type="button"
          class="plain narrow-only"
          aria-label="Menu"
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          <Icon of="menu" />
        </button>
      </div>
      <button type="button" class="find" aria-keyshortcuts="/ Control+K Meta+K" onClick={find}>
        <Icon of="search" />
        Search <kbd aria-hidden="true">/</kbd>
      </button>
      <nav aria-label="Main">
        <ul>
          {links(who).map(([name, icon, href]) => (
            <li key={href}>
              <a href={href} aria-current={here === href ? "page" : undefined}>
                <Icon of={icon} />
                {name}
              </a>
            </li>
          ))}
        </ul>
        <p class="label">
          <a href={to("projects")} aria-current={here === to("projects") ? "page" : undefined}>
            Projects
          </a>
        </p>
        <ul>
          {projects.map(({ id }) => (
            <li key={id}>
              <a
                href={toTab(id, "overview")}
                aria-current={place[0] === "projects" && place[1] === id ? "true" : undefined}
              >
                <Icon of="project" />
                {id}
              </a>
            </li>
          ))}
          {hasMore && (
            <li>
              <a href={to("projects")}>All projects…</a>
            </li>
          )}
        </ul>
      </nav>
      <UserMenu who={who} help={help} />
    </header>
  )
}
