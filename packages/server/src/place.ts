/** Where the server keeps everything. */

import { Setting } from "@tenure/core/internal"
import { connectionOptions } from "@tenure/postgres"
import { serversFile } from "@tenure/postgres/ops/upkeep"
import * as Result from "effect/Result"

/** Where everything is kept. */
export type Place =
  | { readonly _tag: "Memory" }
  | { readonly _tag: "Folder"; readonly path: string }
  | { readonly _tag: "Server"; readonly url: string }
  /** In cells on several servers, which a file names. */
  | { readonly _tag: "Servers"; readonly path: string }

const { url } = connectionOptions.fields

const expected = `"memory:", "file:" and the path of a folder, "servers:" and the path of a file, or ${url.expected}`

// What is invalid may still have a password.
const other = Setting.custom<string, Place>(
  expected,
  () => undefined,
  () => "another text",
)

const folder = /^file:(.+)$/

/** A place, as a URL. */
export const setting: Setting.Setting<string, Place> = {
  expected,
  read: (given, name) => {
    if (given === "memory:") return Result.succeed({ _tag: "Memory" })
    if (typeof given !== "string") return other.read(given, name)
    const path = folder.exec(given)?.[1]
    if (path !== undefined) return Result.succeed({ _tag: "Folder", path })
    const file = serversFile(given)
    if (file !== undefined) return Result.succeed({ _tag: "Servers", path: file })
    // Also such as SQLAlchemy and JDBC write.
    if (!/^[\w:]*postgres(ql)?[\w+.-]*:/.test(given)) return other.read(given, name)
    return Result.map(url.read(given, name), (of) => ({ _tag: "Server", url: of }))
  },
}
