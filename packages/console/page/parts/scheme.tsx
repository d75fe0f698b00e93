/** Light or dark: as the system has it, unless the user chooses. */

import { useState } from "preact/hooks"

const schemes = ["auto", "light", "dark"] as const

type Scheme = (typeof schemes)[number]

const key = "tenure-console-scheme"

/** Returns what the user has chosen. */
export const chosen = (): Scheme =>
  schemes.find((scheme) => scheme === localStorage.getItem(key)) ?? "auto"

/** Shows the page in a scheme. */
export const apply = (scheme: Scheme): void => {
  document.documentElement.dataset["scheme"] = scheme
}

/** Lets the user choose. */
export const SchemeChoice = () => {
  const [scheme, setScheme] = useState(chosen)
  const choose = (next: Scheme) => {
    localStorage.setItem(key, next)
    apply(next)
    setScheme(next)
  }
  return (
    <select
      aria-label="Colours"
      value={scheme}
      onChange={({ currentTarget: { value } }) =>
        choose(schemes.find((one) => one === value) ?? "auto")
      }
    >
      {schemes.map((one) => (
        <option key={one} value={one}>
          {one}
        </option>
      ))}
    </select>
  )
}
