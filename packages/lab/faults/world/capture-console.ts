/** Keeps what is written to the console, where the host logs. */

import { format } from "node:util"

const names = ["debug", "error", "info", "log", "warn"] as const

/** Keeps all that is written until it is restored. */
export const captureConsole = (): { readonly text: () => string; readonly restore: () => void } => {
  const originals = names.map((name) => [name, console[name]] as const)
  let text = ""
  for (const name of names) {
    console[name] = (...args: ReadonlyArray<unknown>) => {
      text += `${format(...args)}\n`
    }
  }
  return {
    text: () => text,
    restore: () => {
      for (const [name, original] of originals) console[name] = original
    },
  }
}
