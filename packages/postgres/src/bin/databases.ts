/** A file with several databases and the projects of each, for programs that are configured from outside. */

import { readFile } from "node:fs/promises"
import { InvalidInput } from "@tenure/core/InvalidInput"
import * as Setting from "@tenure/core/Setting"
import * as Effect from "effect/Effect"
import { shardOptions } from "../index.ts"

const { listenUrl, name, projects, url } = shardOptions.fields

const entries = Setting.list(Setting.struct({ name, url, projects, listenUrl }))

/** What a URL of such a file begins with. */
const scheme = "map:"

/** The path of the file that a URL names, if it names one. */
export const pathOf = (given: string): string | undefined =>
  given.startsWith(scheme) && given.length > scheme.length ? given.slice(scheme.length) : undefined

/** Reads a file. No error has anything of it: it may have passwords. */
const parse = (path: string) =>
  Effect.tryPromise({
    try: async (): Promise<unknown> => JSON.parse(await readFile(path, "utf8")),
    catch: (fault) =>
      new InvalidInput({
        field: path,
        problem: fault instanceof SyntaxError ? "must be JSON" : "cannot be read",
      }),
  })

/**
 * Reads the databases in a file, a JSON array of their options `name`, `url`, `projects` and `listenUrl`. The
 * projects are ids, or `"others"`.
 *
 * Fails with `InvalidInput` if the file cannot be read, or an entry is invalid.
 */
export const read = Effect.fnUntraced(function* (path: string) {
  const given = yield* parse(path)
  return yield* Effect.fromResult(entries.read(given, path))
})
