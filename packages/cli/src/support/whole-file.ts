/** Files replaced whole or not at all, whenever the command ends. */

import { randomUUID } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Scope from "effect/Scope"

/** A file's future content. */
export interface Draft {
  readonly write: (text: string) => Effect.Effect<void, PlatformError>
  /** Replaces the file. Without it, the file stays as it was. */
  readonly commit: Effect.Effect<void, PlatformError>
}

const isMissing = ({ reason }: PlatformError): boolean => reason._tag === "NotFound"

const optional = <A, R>(reading: Effect.Effect<A, PlatformError, R>) =>
  Effect.map(reading, Option.some).pipe(
    Effect.catchIf(isMissing, () => Effect.succeed(Option.none<A>())),
  )

/** Follows links, even to a missing file. */
const follow = Effect.fnUntraced(function* (path: string) {
  const files = yield* FileSystem.FileSystem
  const { basename, dirname, join, resolve } = yield* Path.Path
  const found = yield* optional(files.realPath(path))
  if (Option.isSome(found)) return found.value
  const folder = yield* files.realPath(dirname(path))
  const link = yield* Effect.option(files.readLink(path))
  return Option.isSome(link) ? resolve(folder, link.value) : join(folder, basename(path))
})

/**
 * Finds out whether a path can be replaced: nothing or a file can, a pipe, for example, cannot. This
 * process's own output stays in place even if it is a file.
 */
const inspect = Effect.fnUntraced(function* (path: string) {
  const { resolve } = yield* Path.Path
  const info = yield* optional((yield* FileSystem.FileSystem).stat(path))
  const isFile = Option.isNone(info) || info.value.type === "File"
  return { info, isReplaceable: isFile && !/^\/(?:dev|proc)\//.test(resolve(path)) }
})

const encoder = new TextEncoder()

const openAt = Effect.fnUntraced(function* (path: string) {
  const files = yield* FileSystem.FileSystem
  const file = yield* files.open(path, { flag: "a" })
  return {
    write: (text) => file.writeAll(encoder.encode(text)),
    commit: Effect.void,
  } satisfies Draft
})

/** Copies the owner and permissions to a draft from the file it replaces. */
const imitate = Effect.fnUntraced(function* (
  path: string,
  { gid, mode, uid }: FileSystem.File.Info,
) {
  const files = yield* FileSystem.FileSystem
  // Only an administrator can give files away.
  yield* Effect.ignore(
    files.chown(
      path,
      Option.getOrElse(uid, () => -1),
      Option.getOrElse(gid, () => -1),
    ),
  )
  yield* files.chmod(path, mode & 0o777)
})

/**
 * Opens a draft in a temporary file beside the target, removed when the scope closes. A pipe, for
 * example, is written directly.
 *
 * @param mode - a new file's permissions
 */
export const openDraft = Effect.fnUntraced(function* (path: string, mode = 0o666) {
  const files = yield* FileSystem.FileSystem
  const { info, isReplaceable } = yield* inspect(path)
  if (!isReplaceable) return yield* openAt(path)
  const target = yield* follow(path)
  const beside = `${target}.${randomUUID().slice(0, 8)}.part`
  yield* Effect.addFinalizer(() => Effect.ignore(files.remove(beside, { force: true })))
  // Systems without POSIX rename closed files only.
  const opened = yield* Effect.acquireRelease(Scope.make(), (scope) =>
    Scope.close(scope, Exit.void),
  )
  const file = yield* Scope.provide(files.open(beside, { flag: "wx", mode }), opened)
  if (Option.isSome(info)) yield* imitate(beside, info.value)
  return {
    write: (text) => file.writeAll(encoder.encode(text)),
    commit: file.sync.pipe(
      Effect.andThen(Scope.close(opened, Exit.void)),
      Effect.andThen(files.rename(beside, target)),
      Effect.uninterruptible,
    ),
  } satisfies Draft
})

/** Removes a file, if there is one. */
export const removeFile = Effect.fnUntraced(function* (path: string) {
  const { info, isReplaceable } = yield* inspect(path)
  if (isReplaceable && Option.isSome(info)) yield* (yield* FileSystem.FileSystem).remove(path)
})
