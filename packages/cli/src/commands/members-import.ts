/** `tenure members import`: reads a file, sends it in batches, and keeps the refused lines. */

import { createHash } from "node:crypto"
import { createReadStream, fstatSync, statSync } from "node:fs"
import type { Readable } from "node:stream"
import type { CallOptions, EventsPreview, ImportLine } from "@tenure/client"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { Api, callApi, retryUntilAvailable } from "../support/api.ts"
import { addEvents } from "../support/dry-run.ts"
import { Failure, operationFailed, usageFailure } from "../support/failure.ts"
import { fileProblem } from "../support/input.ts"
import { makeProgress } from "../support/progress.ts"
import { type Draft, openDraft, removeFile } from "../support/whole-file.ts"
import { UnreadableFile } from "./file-text.ts"
import {
  type FileLine,
  type FileMember,
  type Reading,
  type RejectedLine,
  readLines,
} from "./member-lines.ts"

/** A batch of lines for one request. */
export interface ImportBatch {
  /** At most one per user. */
  readonly members: ReadonlyArray<FileMember>
  readonly refused: ReadonlyArray<RejectedLine>
  /** Identical for the same batch from the same file: the server applies it once, even across runs. */
  readonly key: string
}

// The API's maximum.
const maxMembers = 10_000

// The most bytes in a batch's lines, with a line to spare, below the API's limit: 2 MiB.
const maxBatchBytes = 2_000_000

/** A member as it is sent. */
const formatLine = ({
  end_date,
  kept_day,
  metadata,
  paused_at,
  resumes_at,
  through,
  time_zone,
  user_id,
}: FileMember): ImportLine => ({
  user_id,
  ...(through === undefined ? { end_date } : { through }),
  ...(time_zone !== undefined && { time_zone }),
  ...(kept_day !== undefined && { kept_day }),
  ...(paused_at !== undefined && { paused_at }),
  ...(resumes_at !== undefined && { resumes_at }),
  ...(metadata !== undefined && { metadata }),
})

const sizeOf = (member: FileMember): number =>
  Buffer.byteLength(JSON.stringify(formatLine(member))) + 1

/** Derives a key from the previous one and the members. */
const nextBatchKey = (earlier: string, members: ReadonlyArray<FileMember>): string => {
  const hash = createHash("sha256").update(earlier)
  for (const member of members) hash.update(`\n${JSON.stringify(formatLine(member))}`)
  return hash.digest("base64url")
}

/**
 * Splits lines into batches. If a user occurs repeatedly in a batch, the last line wins, as it does
 * across batches.
 *
 * @param seed - goes into the keys in addition to the lines
 */
export async function* splitIntoBatches(
  lines: AsyncIterable<FileLine>,
  seed: string,
): AsyncGenerator<ImportBatch> {
  let members = new Map<string, FileMember>()
  let refused: Array<RejectedLine> = []
  let bytes = 0
  let key = seed
  const take = (): ImportBatch => {
    const part = {
      members: [...members.values()],
      refused,
      key: nextBatchKey(key, [...members.values()]),
    }
    members = new Map()
    refused = []
    bytes = 0
    key = part.key
    return part
  }
  for await (const line of lines) {
    if (line._tag === "Refused") refused.push(line)
    else if (line._tag === "Member") {
      const size = sizeOf(line)
      if (bytes + size > maxBatchBytes) yield take()
      members.set(line.user_id, line)
      bytes += size
    }
    if (members.size === maxMembers || refused.length === maxMembers) yield take()
  }
  if (members.size + refused.length > 0) yield take()
}

/** The import's destination and options. */
export interface ImportTarget {
  readonly project: string
  /** Whether members are only checked, and whether webhooks are previewed. */
  readonly dryRun: boolean
  readonly events: boolean
}

/** Counts from a dry run. */
interface ImportCounts {
  readonly would_grant: number
  readonly would_shorten: number
  readonly would_stay: number
  /** How many reminders and ends would be announced in seven days. */
  readonly would_announce: number
}

const addCounts = (
  before: ImportCounts | undefined,
  more: ImportCounts | undefined,
): ImportCounts | undefined =>
  before === undefined || more === undefined
    ? (before ?? more)
    : {
        would_grant: before.would_grant + more.would_grant,
        would_shorten: before.would_shorten + more.would_shorten,
        would_stay: before.would_stay + more.would_stay,
        would_announce: before.would_announce + more.would_announce,
      }

/** A batch's result. */
export interface SentBatch {
  /** Present in a dry run. */
  readonly counts?: ImportCounts | undefined
  /** A webhook preview, if a dry run requests it. */
  readonly events?: EventsPreview
  readonly members: number
  /** How many members an earlier run had sent already. */
  readonly repeated: number
  readonly refused: ReadonlyArray<RejectedLine>
}

/** Returns the lines refused by the server, by their index in the batch. */
const refusedOf = (
  members: ReadonlyArray<FileMember>,
  { lines }: Failure,
): ReadonlyArray<RejectedLine> =>
  (lines ?? []).flatMap(({ line, message }) => {
    const member = members[line - 1]
    return member === undefined
      ? []
      : [{ _tag: "Refused", line: member.line, problem: message, given: formatLine(member) }]
  })

const request = (
  { dryRun, events, project }: ImportTarget,
  members: ReadonlyArray<FileMember>,
  idempotencyKey: string,
) =>
  retryUntilAvailable(
    callApi(({ memberships }, options: CallOptions) =>
      memberships.import(
        {
          project_id: project,
          lines: members.map(formatLine),
          ...(dryRun && { dry_run: "true" }),
          ...(events && { events: "true" }),
        },
        { ...options, idempotencyKey },
      ),
    ),
  )

/** Sends members. If the server refuses lines, sends the remaining ones again. */
const sendMembers: (
  target: ImportTarget,
  members: ReadonlyArray<FileMember>,
  key: string,
) => Effect.Effect<SentBatch, Failure, Api> = Effect.fnUntraced(function* (target, members, key) {
  if (members.length === 0) return { members: 0, repeated: 0, refused: [] }
  const { repetitions } = yield* Api
  const before = repetitions()
  const answer = yield* Effect.result(request(target, members, key))
  if (Result.isSuccess(answer)) {
    const repeated = repetitions() > before ? members.length : 0
    const { data } = answer.success
    if (data === null) return { members: members.length, repeated, refused: [] }
    const { announcements, events, would_grant, would_shorten, would_stay } = data
    const { expired = 0, expiring = 0, overdue = 0 } = announcements ?? {}
    const would_announce = expired + expiring + overdue
    const counts = { would_grant, would_shorten, would_stay, would_announce }
    return { members: members.length, repeated, refused: [], counts, ...(events && { events }) }
  }
  const { failure } = answer
  const refused = refusedOf(members, failure)
  if (refused.length === 0) return yield* failure
  const numbers = new Set(refused.map(({ line }) => line))
  const rest = members.filter(({ line }) => !numbers.has(line))
  const sent = yield* sendMembers(target, rest, nextBatchKey(key, rest))
  return { ...sent, refused: [...refused, ...sent.refused] }
})

/** Sends a part. */
export const sendBatch = (target: ImportTarget, { key, members, refused }: ImportBatch) =>
  Effect.map(sendMembers(target, members, key), (sent) => ({
    ...sent,
    refused: [...refused, ...sent.refused],
  }))

/** The flags. */
export interface ImportFlags extends ImportTarget {
  /** A file's path, or `-` for standard input. */
  readonly file: string
  readonly reading: Reading
  /** The path for the refused lines. */
  readonly refused: string
  /** Distinguishes repeated imports from the same file. */
  readonly run: string
}

interface Source {
  readonly stream: Readable
  /** The size in bytes, if known. */
  readonly size: number | undefined
}

const unusable = (path: string) => (error: PlatformError) =>
  Effect.fail(usageFailure(fileProblem(path, error)))

/** Opens a file, or standard input. */
export const openSource = Effect.fnUntraced(
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

const toText = (lines: ReadonlyArray<RejectedLine>): string =>
  lines.map(({ given, line, problem }) => `${JSON.stringify({ line, problem, given })}\n`).join("")

/** Creates the file for refused lines. Without any, there is no file afterwards; a dry run removes none. */
const makeKeep = (path: string, isDry: boolean) => {
  let draft: Draft | undefined
  const explained = Effect.mapError((error: PlatformError) =>
    operationFailed(fileProblem(path, error)),
  )
  const keep = Effect.fnUntraced(function* (lines: ReadonlyArray<RejectedLine>) {
    if (lines.length === 0) return
    draft ??= yield* openDraft(path)
    yield* draft.write(toText(lines))
  }, explained)
  const end = Effect.suspend(() => draft?.commit ?? (isDry ? Effect.void : removeFile(path))).pipe(
    explained,
  )
  return { keep, end }
}

const identityOf = (path: string) =>
  path === "-" ? fstatSync(0, { bigint: true }) : statSync(path, { bigint: true })

/**
 * Tells whether two paths name the same file, for example through a link. A missing file equals no
 * other.
 */
const isSameFile = (one: string, other: string) =>
  Effect.try(() => {
    const { dev, ino } = identityOf(other)
    const found = identityOf(one)
    return found.isFile() && found.dev === dev && found.ino === ino
  }).pipe(Effect.orElseSucceed(() => false))

/** Fails if the refused lines would overwrite the input. */
const requireOther = Effect.fnUntraced(function* (file: string, refused: string) {
  if (yield* isSameFile(file, refused))
    return yield* usageFailure(
      `${refused} is the file with the members: give --refused another file.`,
    )
})

/** Says why members cannot be read on. */
export const unreadable = (fault: unknown): Failure =>
  fault instanceof UnreadableFile
    ? usageFailure(`${fault.message}.`)
    : operationFailed(
        `The members cannot be read: ${fault instanceof Error ? fault.message : fault}.`,
      )

/** Says how to go on, if it makes sense to. */
const advise = (failure: Failure): Failure =>
  failure.kind === "unavailable"
    ? new Failure({
        ...failure,
        message: `${failure.message} The same command goes on where this one has stopped.`,
      })
    : failure

/** Lines refused for the same reason. */
export interface Refusal {
  readonly problem: string
  readonly count: number
  /** The first line's number. */
  readonly line: number
}

// More reasons than this are not told apart.
const maxReasons = 100

/** Counts refused lines by reason. */
export const countRefused = (
  counted: Map<string, Refusal>,
  lines: ReadonlyArray<RejectedLine>,
): void => {
  for (const { line, problem } of lines) {
    const known = counted.get(problem)
    if (known === undefined && counted.size === maxReasons) continue
    counted.set(problem, { problem, line: known?.line ?? line, count: (known?.count ?? 0) + 1 })
  }
}

// How many reasons people are told.
const maxTold = 3

/** Says why most lines were refused. */
export const describeRefusals = (refusals: ReadonlyArray<Refusal>): string =>
  refusals
    .toSorted((one, other) => other.count - one.count)
    .slice(0, maxTold)
    .map(({ count, line, problem }) => `${count} × ${problem} (first in line ${line})`)
    .join("; ")

/** Imports a file and counts imported and refused lines. */
export const runImport = Effect.fnUntraced(function* ({
  file,
  reading,
  refused,
  run: name,
  ...target
}: ImportFlags) {
  yield* requireOther(file, refused)
  const { size, stream } = yield* openSource(file)
  const { end, keep } = makeKeep(refused, target.dryRun)
  const display = makeProgress(process.stderr, "members")
  const start = yield* Clock.currentTimeMillis
  const total = { members: 0, repeated: 0, refused: 0 }
  const refusals = new Map<string, Refusal>()
  let events: EventsPreview | undefined
  let counts: ImportCounts | undefined
  let bytes = 0
  const counted = async function* (): AsyncGenerator<Buffer> {
    for await (const chunk of stream) {
      bytes += chunk.length
      yield chunk
    }
  }
  const lines = readLines(counted(), reading)
  const parts = splitIntoBatches(lines, JSON.stringify([target.project, name]))
  yield* Stream.fromAsyncIterable(parts, unreadable).pipe(
    Stream.runForEach(
      Effect.fnUntraced(function* (part) {
        const sent = yield* sendBatch(target, part)
        yield* keep(sent.refused)
        events = addEvents(events, sent.events)
        counts = addCounts(counts, sent.counts)
        total.members += sent.members
        total.repeated += sent.repeated
        total.refused += sent.refused.length
        countRefused(refusals, sent.refused)
        const millis = (yield* Clock.currentTimeMillis) - start
        display.show({ done: bytes, of: size, items: total.members, millis })
      }),
    ),
    Effect.ensuring(Effect.sync(display.end)),
    Effect.mapError(advise),
  )
  yield* end
  const seconds = ((yield* Clock.currentTimeMillis) - start) / 1000
  return { done: { ...total, ...counts, seconds }, events, refusals: [...refusals.values()] }
}, Effect.scoped)
