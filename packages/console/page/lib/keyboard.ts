/** Keys for the whole page, unless the user types text or a dialog is open. */

import { useEffect, useRef } from "preact/hooks"
import { chosenOf, choose } from "./choices.ts"

// How long the second key may take, in milliseconds.
const pause = 1000

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.closest("input, select, textarea, dialog") !== null

/** Whether single letters are shortcuts: some users need them off. */
export const hasLetters = (): boolean => chosenOf("keys", ["on", "off"]) === "on"

/** Turns single letters on or off. */
export const setLetters = (isOn: boolean): void => choose("keys", isOn ? "on" : "off", "on")

/** Moves the focus to the next or the previous row on the screen. */
const move = (step: 1 | -1): void => {
  const rows = [...document.querySelectorAll<HTMLElement>("main [data-row]")]
  const current = rows.findIndex((row) => row === document.activeElement)
  const next = current === -1 && step === -1 ? rows.length - 1 : current + step
  rows[Math.max(0, Math.min(rows.length - 1, next))]?.focus()
}

/** Actions of keys: letters after `g`, the palette, and the list of shortcuts. */
interface Keys {
  readonly go: Readonly<Record<string, () => void>>
  readonly find: () => void
  readonly help: () => void
}

/** Follows the keys. */
export const useKeys = (keys: Keys): void => {
  const current = useRef(keys)
  current.current = keys
  useEffect(() => {
    let afterG = -Infinity
    const follow = (event: KeyboardEvent): void => {
      const { ctrlKey, key, metaKey, target } = event
      const take = (action: () => void): void => {
        event.preventDefault()
        action()
      }
      if ((ctrlKey || metaKey) && key.toLowerCase() === "k") return take(current.current.find)
      if (ctrlKey || metaKey || event.altKey || isTyping(target) || !hasLetters()) return
      const isSecond = event.timeStamp - afterG < pause
      afterG = key === "g" ? event.timeStamp : -Infinity
      const place = isSecond ? current.current.go[key] : undefined
      if (place !== undefined) return take(place)
      if (key === "/") return take(current.current.find)
      if (key === "?") return take(current.current.help)
      if (key === "j") return take(() => move(1))
      if (key === "k") return take(() => move(-1))
    }
    addEventListener("keydown", follow)
    return () => removeEventListener("keydown", follow)
  }, [])
}
