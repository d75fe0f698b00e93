/** The colours of charts, on a light and on a dark page. */

/** A colour on a light page, and on a dark one. */
interface Shades {
  readonly light: string
  readonly dark: string
}

/** The page that a chart is made for. */
export type Theme = keyof Shades

/** Everything but the bars. */
export const page = {
  background: { light: "#ffffff", dark: "#0d1117" },
  text: { light: "#1f2328", dark: "#f0f6fc" },
  muted: { light: "#59636e", dark: "#9198a1" },
} satisfies Record<string, Shades>

const other: Shades = { light: "#8c959f", dark: "#6e7781" }

// The first whose name begins so. Tenure's is the only strong colour.
const families: ReadonlyArray<readonly [name: string, shades: Shades]> = [
  ["Tenure", { light: "#4f46e5", dark: "#8b85ff" }],
  ["node:http", { light: "#8c959f", dark: "#6e7781" }],
  ["Fastify", { light: "#c19a3f", dark: "#a98a45" }],
  ["Express", { light: "#b77b62", dark: "#a06f5b" }],
  ["express-rate-limit", { light: "#b77b62", dark: "#a06f5b" }],
  ["fetch", { light: "#8a9d5b", dark: "#788a52" }],
  ["rate-limiter-flexible", { light: "#4f9d94", dark: "#47877f" }],
  ["Effect", { light: "#bd7c9a", dark: "#a36c86" }],
  ["pgbench", { light: "#6d93ba", dark: "#5d7fa3" }],
  ["prepared loops", { light: "#6d93ba", dark: "#5d7fa3" }],
]

/** The colour of everything that has this name, in all charts. */
export const colourOf = (name: string, theme: Theme): string => {
  const family = families.find(([beginning]) => name.startsWith(beginning))
  return (family?.[1] ?? other)[theme]
}
