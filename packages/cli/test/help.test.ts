/** What `--help` shows. */

import type * as Command from "effect/cli/Command"
import { expect, it } from "vitest"
import { tenure } from "../src/index.ts"
import { tenureWith } from "./in-process.ts"

const pathsOf = (
  command: Command.Command.Any,
  path: ReadonlyArray<string>,
): ReadonlyArray<ReadonlyArray<string>> => [
  path,
  ...command.subcommands.flatMap(({ commands }) =>
    commands.flatMap((sub) => pathsOf(sub, [...path, sub.name])),
  ),
]

it.each(pathsOf(tenure, []).map((path) => ({ path, name: ["tenure", ...path].join(" ") })))(
  "$name has examples, all of it",
  async ({ name, path }) => {
    const { code, stdout } = await tenureWith({})(...path, "--help")
    expect(code).toBe(0)
    const [, examples = ""] = stdout.split("EXAMPLES\n")
    expect(examples).toContain(name)
  },
)
