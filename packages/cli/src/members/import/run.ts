/** Imports a file: reads it, sends it part by part, and keeps what was refused. */

import { createReadStream, fstatSync, statSync } from "node:fs"
import type { Readable } from "node:stream"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"
import * as Stream from "effect/Stream"
import { failed, Failure, usage } from "../../Failure.ts"
import { fileProblem } from "../../input/fileProblem.ts"
import * as Progress from "../../output/Progress.ts"
import * as WholeFile from "../../output/WholeFile.ts"
import type { Format } from "../formats.ts"
import type { Refused } from "./Line.ts"
import { read, Unreadable } from "./lines.ts"
import * as Part from "./Part.ts"
import { send } from "./send.ts"

/** What is imported. */
export interface Given {
  readonly project: string
  /** The path of a file, or `-` for standard input. */
  readonly file: string
  readonly format: Format
  /** The path of the file for the lines that are refused. */
  readonly refused: string
  /** Tells this import from another one of the same file. */
  readonly run: string
}

interface Source {
  readonly stream: Readable
  /** How many bytes there are, if that is known. */
  readonly size: number | undefined
}

const unusable = (path: string) => (error: PlatformError) =>
  Effect.fail(usage(fileProblem(path, error)))

const open = Effect.fnUntraced(
  function* (path: string) {
    if (path === "-") return { stream: process.stdin, size: undefined } satisfies Source
    const { size } = yield* (yield* FileSystem.FileSystem).stat(path)
    const stream = yield* Effect.acquireRelease(
      Effect.sync(() => createReadStream(path)),
      (opened) => Effect.sync(() => opened.destroy()),
    )
    return { stream, size: Number(size) } satisfies Source
  },
  (opening, path) => Effect.catchTag(opening, "PlatformError", unusable(path)),
)

const toText = (lines: ReadonlyArray<Refused>): string =>
  lines.map(({ given, line, problem }) => `${JSON.stringify({ line, problem, given })}\n`).join("")

/** Makes a file of the lines that are refused. If there are none, there is no such file afterwards. */
const makeKeep = (path: string) => {
  let draft: WholeFile.Draft | undefined
  const explained = Effect.mapError((error: PlatformError) => failed(fileProblem(path, error)))
  const keep = Effect.fnUntraced(function* (lines: ReadonlyArray<Refused>) {
    if (lines.length === 0) return
    draft ??= yield* WholeFile.open(path)
    yield* draft.write(toText(lines))
  }, explained)
  const end = Effect.suspend(() => draft?.commit ?? WholeFile.remove(path)).pipe(explained)
  return { keep, end }
}

const identityOf = (path: string) =>
  path === "-" ? fstatSync(0, { bigint: true }) : statSync(path, { bigint: true })

/** Whether two paths name one file, as links and other spellings do. A file that is not there is no other. */
const isSameFile = (one: string, other: string) =>
  Effect.try(() => {
    const { dev, ino } = identityOf(other)
    const found = identityOf(one)
    return found.isFile() && found.dev === dev && found.ino === ino
  }).pipe(Effect.orElseSucceed(() => false))

/** Fails if the lines that are refused would replace the lines that are read. */
const requireOther = Effect.fnUntraced(function* (file: string, refused: string) {
  if (yield* isSameFile(file, refused))
    return yield* usage(`${refused} is the file with the members: give --refused another file.`)
})

const unreadable = (fault: unknown): Failure =>
  fault instanceof Unreadable
    ? usage(`${fault.message}.`)
    : failed(`The members cannot be read: ${fault instanceof Error ? fault.message : fault}.`)

/** Says how to go on, if it makes sense to. */
const advise = (failure: Failure): Failure =>
  failure.kind === "unavailable"
    ? new Failure({
        ...failure,
        message: `${failure.message} The same command goes on where this one has stopped.`,
      })
    : failure

/** Imports a file, and returns how many lines went where. */
export const run = Effect.fnUntraced(function* ({
  file,
  format,
  project,
  refused,
  run: name,
}: Given) {
  yield* requireOther(file, refused)
  const { size, stream } = yield* open(file)
  const { end, keep } = makeKeep(refused)
  const display = Progress.make(process.stderr, "members")
  const start = yield* Clock.currentTimeMillis
  const total = { members: 0, repeated: 0, refused: 0 }
  let bytes = 0
  stream.on("data", (chunk: Buffer) => {
    bytes += chunk.length
  })
  const parts = Part.divide(read(stream, format), JSON.stringify([project, name]))
  yield* Stream.fromAsyncIterable(parts, unreadable).pipe(
    Stream.runForEach(
      Effect.fnUntraced(function* (part) {
        const sent = yield* send(project, part)
        yield* keep(sent.refused)
        total.members += sent.members
        total.repeated += sent.repeated
        total.refused += sent.refused.length
        const millis = (yield* Clock.currentTimeMillis) - start
        display.show({ done: bytes, of: size, items: total.members, millis })
      }),
    ),
    Effect.ensuring(Effect.sync(display.end)),
    Effect.mapError(advise),
  )
  yield* end
  return { ...total, seconds: ((yield* Clock.currentTimeMillis) - start) / 1000 }
}, Effect.scoped)
