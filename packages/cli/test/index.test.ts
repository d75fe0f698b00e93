/** What `--help` shows, and that the commands which pages name exist, with their flags. */

import { readFileSync } from "node:fs"
import { glob } from "node:fs/promises"
import type * as Command from "effect/cli/Command"
import { expect, it } from "vitest"
import { tenure } from "../src/index.ts"
import { tenureWith } from "./in-process.ts"

const root = new URL("../../../", import.meta.url)

const files: Array<string> = []
for await (const file of glob(
  [
    "*.md",
    "docs/{,hosts/,internals/}*.md",
    "packages/*/{README,CHANGELOG}.md",
    "examples/*/README.md",
  ],
  { cwd: root, exclude: (path) => path.includes("node_modules") },
)) {
  files.push(file)
}

/** Returns what is in code spans, and the lines in code blocks. */
const codeIn = (text: string): ReadonlyArray<string> => {
  const blocks = [...text.matchAll(/^ *```.*\n(.*?)^ *```$/gms)].map(([, code = ""]) => code)
  const prose = text.replaceAll(/^ *```.*?^ *```$/gms, "")
  const spans = [...prose.matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => code)
  return [...blocks.join("").split("\n"), ...spans]
}

/** Returns the commands' words that a code line runs, without comments and redirections. */
const commandsIn = (line: string): ReadonlyArray<ReadonlyArray<string>> =>
  line.split(/[|;<>]|&&|\s#/).flatMap((part) => {
    const [, words] = /^(?:.*\bnpx )?tenure (.*)$/.exec(part.trim()) ?? []
    return words === undefined ? [] : [words.trim().split(/\s+/)]
  })

const commands = files.flatMap((file) =>
  codeIn(readFileSync(new URL(file, root), "utf8"))
    .flatMap(commandsIn)
    .map((words) => ({ file, words })),
)

const subcommandsOf = (command: Command.Command.Any): ReadonlyArray<Command.Command.Any> =>
  command.subcommands.flatMap((group) => group.commands)

/** Returns the command names with which words begin, such as `members extend`. */
const pathOf = (words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const path: Array<string> = []
  let command: Command.Command.Any | undefined = tenure
  for (const word of words) {
    command = subcommandsOf(command).find(({ name }) => name === word)
    if (command === undefined) return path
    path.push(word)
  }
  return path
}

const helps = new Map<string, string>()

const helpOf = async (path: ReadonlyArray<string>): Promise<string> => {
  const name = path.join(" ")
  const help = helps.get(name) ?? (await tenureWith({}).print`${path} --help`)
  helps.set(name, help)
  return help
}

const pathsOf = (
  command: Command.Command.Any,
  path: ReadonlyArray<string> = [],
): ReadonlyArray<ReadonlyArray<string>> => [
  path,
  ...subcommandsOf(command).flatMap((sub) => pathsOf(sub, [...path, sub.name])),
]

it.each(pathsOf(tenure).map((path) => ({ path, name: ["tenure", ...path].join(" ") })))(
  "the help of $name has examples, all of it",
  async ({ name, path }) => {
    const [, examples = ""] = (await helpOf(path)).split("EXAMPLES\n")
    expect(examples).toContain(name)
  },
)

/** A placeholder, such as `COMMAND`, stands for every command. */
const isPlaceholder = (word: string): boolean => /^[A-Z]+$/.test(word)

it("pages name only commands that exist", () => {
  const unknown = commands.filter(
    ({ words: [first = ""], words }) =>
      !first.startsWith("-") && !isPlaceholder(first) && pathOf(words).length === 0,
  )
  expect(unknown).toEqual([])
  expect(commands.length).toBeGreaterThan(50)
})

it("pages name only flags that the command has", async () => {
  const wrong: Array<string> = []
  for (const { file, words } of commands) {
    const path = pathOf(words)
    const help = await helpOf(path)
    const flags = words.flatMap((word) => /^--?[a-z][\w-]*/.exec(word)?.[0] ?? [])
    for (const flag of flags)
      if (!new RegExp(`${flag}(?![\\w-])`).test(help))
        wrong.push(`${file}: tenure ${path.join(" ")} ${flag}`)
  }
  expect(wrong).toEqual([])
})
