/** The bundled server's variables on the options page: from their definitions, and the doc comments there. */

import { type Variable, bundledServerOptions, variables } from "@tenure/server/settings"
import * as Predicate from "effect/Predicate"
import { allOptions, fill, flatten } from "./options.ts"

const introduction = `## Variables of the bundled server

A duration is a number of seconds, or a text such as \`15 seconds\`; items of a list are separated by commas; \`EXPIRY_REMINDERS\` also takes \`none\`. If variables are invalid or empty, the server prints what is wrong with each of them, and exits with code 1. One that is unknown and looks misspelled is named in a warning.
`

/** The options that the server has beside the packages'. */
export const serverOptions = () =>
  fill({
    title: "the bundled server",
    sources: "server/src/settings.ts",
    options: bundledServerOptions,
    note: undefined,
  })

const code = (value: unknown): string => {
  const text = String(value)
  return text === "" ? "" : `\`${text}\``
}

/** Writes a default as it is written in a variable. */
const printed = (value: unknown): string => {
  if (value === undefined) return ""
  return Predicate.hasProperty(value, "limit") && Predicate.hasProperty(value, "window")
    ? `${code(value.limit)}, in ${String(value.window)}`
    : code(value)
}

const cellsOf =
  (texts: ReadonlyMap<unknown, string>) =>
  ({ name, option }: Variable<unknown>): ReadonlyArray<string> => {
    const meaning = texts.get(option)?.replace(/ Default: `.*`\.$/, "")
    if (meaning === undefined) throw new Error(`${name} sets an option that is on no page`)
    return [code(name), printed(option.default), meaning]
  }

/** Writes a table, whose columns have the same width in all rows. */
const table = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = rows[0]?.map((_, column) =>
    Math.max(...rows.map((cells) => cells[column]?.length ?? 0)),
  )
  const line = (cells: ReadonlyArray<string>, filler = " "): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths?.[column] ?? 0, filler)).join(" | ")} |`
  const [header = [], ...others] = rows
  const rule = line(
    header.map(() => ""),
    "-",
  )
  return [line(header), rule, ...others.map((cells) => line(cells))].join("\n")
}

/** Writes the variables on the page. */
export const variablesPart = async (): Promise<string> => {
  const sections = [...(await allOptions()), await serverOptions()]
  const texts = new Map(
    sections.flatMap(({ entries }) => flatten(entries)).map(({ setting, text }) => [setting, text]),
  )
  const rows = Object.values(variables).map(cellsOf(texts))
  return `${introduction}\n${table([["variable", "default", "meaning"], ...rows])}\n`
}
