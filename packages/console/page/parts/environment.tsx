/** Light or dark, as the user chooses, and texts from clients, shown literally. */

import { type VNode, options } from "preact"
import { useEffect, useState } from "preact/hooks"
import { choose, chosenOf } from "../lib/choices.ts"

/** All schemes. */
export const schemes = ["auto", "light", "dark"] as const

type Scheme = (typeof schemes)[number]

/** Names a scheme for the user. */
export const nameOf = (scheme: Scheme): string => (scheme === "auto" ? "as the system" : scheme)

/** Returns the user's choice. */
export const chosen = (): Scheme => chosenOf("scheme", schemes)

/** Shows the page in a scheme. */
export const apply = (scheme: Scheme): void => {
  document.documentElement.dataset["scheme"] = scheme
  dispatchEvent(new Event("scheme"))
}

/** Shows the page in a scheme, and keeps the choice. */
export const chooseScheme = (scheme: Scheme): void => {
  choose("scheme", scheme, "auto")
  apply(scheme)
}

/** Calls a function when the colours change. Returns a function to stop this. */
export const onScheme = (listener: () => void): (() => void) => {
  const system = matchMedia("(prefers-color-scheme: dark)")
  addEventListener("scheme", listener)
  system.addEventListener("change", listener)
  return () => {
    removeEventListener("scheme", listener)
    system.removeEventListener("change", listener)
  }
}

/** Lets the user choose. */
export const SchemeChoice = () => {
  const [scheme, setScheme] = useState(chosen)
  useEffect(() => onScheme(() => setScheme(chosen())), [])
  return (
    <select
      aria-label="Colours"
      value={scheme}
      onChange={({ currentTarget: { value } }) =>
        chooseScheme(schemes.find((one) => one === value) ?? "auto")
      }
    >
      {schemes.map((one) => (
        <option key={one} value={one}>
          {nameOf(one)}
        </option>
      ))}
    </select>
  )
}

// Direction marks, including those reordering text, and zero-width spaces.
const deceptive = /[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]/g

const escape = (character: string): string =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`

/** Escapes invisible characters as JSON does. */
const visible = (text: string): string => text.replaceAll(deceptive, escape)

const drawn = (child: unknown): unknown => (typeof child === "string" ? visible(child) : child)

/** Has Preact draw all text like this. */
export const install = (): void => {
  const before = options.vnode
  options.vnode = (node: VNode) => {
    const { children } = node.props
    if (children !== undefined) {
      Object.assign(node.props, {
        children: Array.isArray(children) ? children.map(drawn) : drawn(children),
      })
    }
    before?.(node)
  }
}
