/** `tenure dev --from`: a project's copy under a movable clock. */

import { setInterval, clearInterval } from "node:timers"
import { type Client, createClient } from "@tenure/client"
import { tenureConsole } from "@tenure/console"
import type { ApiResponse, Mountable } from "@tenure/core/adapter"
import { DurationText, EndDate, addDuration } from "@tenure/core/store"
import { toNodeHandler } from "@tenure/node-http"
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { Api, nowhere } from "../support/api.ts"
import { attempt, callFailure, operationFailed, usageFailure } from "../support/failure.ts"
import { makeLocalFetch } from "../support/in-process.ts"
import { makeProgress } from "../support/progress.ts"
import { isoOf, pluralize, printable } from "../support/text.ts"
import {
  type KeyInput,
  clockPath,
  commandOfKey,
  keysHelp,
  listenToKeys,
  makeClockHandler,
  moveClock,
} from "./clock-control.ts"
import { invocation, openKey, openProfile, openServer } from "./dev-server.ts"
import { UnreadableFile } from "./file-text.ts"
import { type Journal, makeJournal } from "./machine-journal.ts"
import { type FileLine, type Reading, readLines } from "./member-lines.ts"
import {
  type Refusal,
  countRefused,
  describeRefusals,
  openSource,
  sendBatch,
  splitIntoBatches,
  unreadable,
} from "./members-import.ts"
import {
  type ExportRecord,
  type ExportedProject,
  type ReadWebhook,
  isRecordLine,
} from "./project-export.ts"
import {
  type MachineClock,
  type TimeMachine,
  century,
  maxWebhooks,
  startTimeMachine,
} from "./time-machine.ts"

/** When a copy begins: a time, or a duration after its start. */
export type ClockGoal = { readonly date: string } | { readonly duration: string }

/** The flags. */
export interface MachineFlags {
  /** A file's path, or `-` for standard input. */
  readonly from: string
  readonly reading: Reading
  /** The time to begin at, by the machine's clock; its start by default. */
  readonly at: Option.Option<ClockGoal>
  /** Statuses by host, for failing receivers. */
  readonly fail: ReadonlyArray<readonly [host: string, status: number]>
  readonly port: number
}

/** Far more webhooks than a project can have. */
const maxRecords = 3000

/** An export: its records without bulk extensions, the number of bulk extensions, and its other lines. */
interface OpenedExport {
  readonly records: ReadonlyArray<ExportRecord>
  readonly bulkExtensions: number
  readonly rest: AsyncGenerator<FileLine>
}

/** Refuses records after the first member, because they belong to another project. */
async function* withoutRecords(
  first: FileLine | undefined,
  lines: AsyncGenerator<FileLine>,
): AsyncGenerator<FileLine> {
  if (first !== undefined) yield first
  for await (const one of lines) {
    if (one._tag !== "Record") yield one
    else {
      const problem = "it must come before the members"
      yield { _tag: "Refused", line: one.line, problem, given: one.record }
    }
  }
}

/** Reads the records at the beginning. */
const readHead = async (lines: AsyncGenerator<FileLine>): Promise<OpenedExport> => {
  const records: Array<ExportRecord> = []
  let bulkExtensions = 0
  for (;;) {
    const { done, value } = await lines.next()
    if (done === true) return { records, bulkExtensions, rest: withoutRecords(undefined, lines) }
    if (value._tag === "Refused" && isRecordLine(value.given))
      throw new UnreadableFile(`Line ${value.line} is wrong: ${value.problem}`)
    if (value._tag !== "Record")
      return { records, bulkExtensions, rest: withoutRecords(value, lines) }
    if (value.record.record === "bulk_extension") bulkExtensions++
    else if (records.length === maxRecords)
      throw new UnreadableFile(`The export has more than ${maxRecords} webhooks`)
    else records.push(value.record)
  }
}

const openExport = Effect.fnUntraced(function* (from: string, reading: Reading) {
  const { stream } = yield* openSource(from)
  return yield* Effect.tryPromise({
    try: () => readHead(readLines(stream, reading)),
    catch: unreadable,
  })
})

const isProject = (record: ExportRecord): record is ExportedProject => record.record === "project"

const isWebhook = (record: ExportRecord): record is ReadWebhook => record.record === "webhook"

// Members alone have no webhooks with them.
const anyReceiver = {
  record: "webhook",
  url: "https://receiver.example/",
  event_types: null,
  ordered: false,
  rate: null,
  description: null,
  disabled_at: null,
} as const satisfies ReadWebhook

/** Registers the enabled webhooks. */
const subscribe = Effect.fnUntraced(function* (
  { webhooks }: Client,
  project_id: string,
  records: ReadonlyArray<ExportRecord>,
) {
  const exported = records.filter(isWebhook)
  const all: ReadonlyArray<ReadWebhook> = records.length === 0 ? [anyReceiver] : exported
  const enabled = all.filter(({ disabled_at }) => disabled_at === null)
  if (enabled.length > maxWebhooks)
    return yield* usageFailure(`The export has more than ${maxWebhooks} webhooks.`)
  for (const { description, event_types, ordered, rate, url } of enabled)
    yield* attempt(() =>
      webhooks.create({
        project_id,
        url,
        ordered,
        rate,
        ...(event_types !== null && { event_types }),
        ...(description !== null && { description }),
      }),
    )
  return { enabled: enabled.length, disabled: all.length - enabled.length }
})

/** Puts the members into the machine. Returns how many there are, and why others are not. */
const load = Effect.fnUntraced(function* (project_id: string, lines: AsyncGenerator<FileLine>) {
  const display = makeProgress(process.stderr, "members")
  const began = yield* Clock.currentTimeMillis
  const refusals = new Map<string, Refusal>()
  let members = 0
  yield* Stream.fromAsyncIterable(splitIntoBatches(lines, project_id), unreadable).pipe(
    Stream.runForEach(
      Effect.fnUntraced(function* (part) {
        const sent = yield* sendBatch({ project: project_id, dryRun: false, events: false }, part)
        countRefused(refusals, sent.refused)
        members += sent.members
        const millis = (yield* Clock.currentTimeMillis) - began
        display.show({ done: members, of: undefined, items: members, millis })
      }),
    ),
    Effect.ensuring(Effect.sync(display.end)),
  )
  return { members, refusals: [...refusals.values()] }
})

/** Returns a machine's API in this process. */
const apiOf = ({ tenure }: TimeMachine, token: string): Api["Service"] => {
  return {
    client: createClient({ baseUrl: nowhere, token, fetch: makeLocalFetch(tenure) }),
    repetitions: () => 0,
    failureOf: callFailure,
    latest: () => undefined,
  }
}

/** Returns the time to begin at. */
const timeOf = (at: ClockGoal, start: number): number | undefined =>
  "date" in at ? Date.parse(at.date) : addDuration(EndDate(start), DurationText(at.duration))

const failureOf = (fault: unknown) =>
  operationFailed(fault instanceof Error ? fault.message : String(fault))

/** Moves to a time, and prints the events on the way. */
const playUntil = Effect.fnUntraced(function* (
  { clock }: TimeMachine,
  journal: Journal,
  until: number,
) {
  const display = makeProgress(process.stderr, "events")
  const began = Date.now()
  const from = clock.now()
  const timer = setInterval(() => {
    const { events } = journal.counted()
    const [done, of] = [clock.now() - from, until - from]
    display.show({ done, of, items: events, millis: Date.now() - began })
  }, 250)
  yield* Effect.tryPromise({ try: () => clock.moveTo(until), catch: failureOf }).pipe(
    Effect.onInterrupt(() => Effect.promise(clock.pause)),
    Effect.ensuring(
      Effect.sync(() => {
        clearInterval(timer)
        display.end()
      }),
    ),
  )
  const seconds = ((Date.now() - began) / 1000).toFixed(1)
  yield* Console.log(`\nFrom ${isoOf(from)} until ${isoOf(until)}, in ${seconds} s:\n`)
  for (const line of journal.summary()) yield* Console.log(line)
})

const clockElement = `<meta name="tenure-clock" content="${clockPath}" />`

/** Adds the clock's path to the console page. */
const nameClock = (response: ApiResponse): ApiResponse => {
  const { body, headers } = response
  return typeof body === "string" && headers["Content-Type"]?.startsWith("text/html") === true
    ? { ...response, body: body.replace("</head>", `  ${clockElement}\n  </head>`) }
    : response
}

const withClock = (page: Mountable): Mountable => ({
  ...page,
  handle: async (request) => nameClock(await page.handle(request)),
  answer: (request, deliver) => page.answer(request, (reply) => deliver(nameClock(reply))),
})

/** Starts the server: the clock, the console and the API. */
const openMachineServer = (
  { clock, tenure }: TimeMachine,
  { port, token }: { readonly port: number; readonly token: string },
) => {
  const page = toNodeHandler(withClock(tenureConsole(tenure, { authorize: "api-key" })))
  const control = makeClockHandler(clock, token)
  return openServer(tenure, {
    port,
    // A large copy's move is answered at its end.
    idleTimeout: "1 hour",
    pages: (request, response, next) =>
      (request.url ?? "").split("?")[0] === clockPath
        ? void control(request, response)
        : page(request, response, next),
  })
}

interface Shown {
  readonly project_id: string
  readonly url: string
  readonly token: string
  /** The profile's name. */
  readonly name: string
  readonly command: string
  readonly now: number
  readonly hasKeys: boolean
}

const helpOf = ({ command, hasKeys, name, now, project_id, token, url }: Shown): string =>
  [
    "",
    `The API      ${url}    ${url}/v2/docs shows it`,
    `The console  ${url}/console/    sign in with the token`,
    `The token    ${token}    until this ends`,
    "",
    `It is ${isoOf(now)}, and time stands still.`,
    ...(hasKeys ? [`Here, ${keysHelp}`] : []),
    "In another terminal, in this folder:",
    "",
    `${command} members list --project ${project_id} --profile ${name}`,
    `curl ${url}${clockPath} -H "Authorization: Bearer ${token}" -H "Content-Type: application/json" -d '{"advance":"1 day"}'`,
    "",
    "What happens, and the requests (→) that would be sent:",
  ].join("\n")

/** Moves the clock by terminal keys, until one ends it. */
export const obeyKeys = Effect.fnUntraced(function* (
  clock: MachineClock,
  input: KeyInput,
  print: (line: string) => void,
) {
  const ended = yield* Deferred.make<void>()
  const onKey = (key: string): void => {
    const command = commandOfKey(key, clock)
    if (command === "end") Deferred.doneUnsafe(ended, Effect.void)
    else if (command !== undefined)
      moveClock(clock, command).catch((fault: unknown) =>
        print(printable(fault instanceof Error ? fault.message : String(fault))),
      )
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => listenToKeys(input, onKey)),
    (stop) => Effect.sync(stop),
  )
  yield* Deferred.await(ended)
})

/** Runs until it is interrupted, or ended by a key. */
export const runTimeMachine = Effect.fnUntraced(function* (flags: MachineFlags) {
  const context = yield* Effect.context<never>()
  const print = (line: string) => void Effect.runForkWith(context)(Console.log(line))
  const { bulkExtensions, records, rest } = yield* openExport(flags.from, flags.reading)
  const project = records.find(isProject)
  if (project === undefined && records.length + bulkExtensions > 0)
    return yield* usageFailure("The export does not name its project: its first line is missing.")
  const project_id = project?.project_id ?? "demo"
  const start =
    project === undefined ? yield* Clock.currentTimeMillis : Date.parse(project.exported_at)
  const until = Option.map(flags.at, (at) => timeOf(at, start) ?? NaN)
  if (Option.isSome(until) && !(until.value >= start && until.value <= start + century))
    return yield* usageFailure(
      `--at must be at ${isoOf(start)}, when the copy starts, or up to a century later.`,
    )

  const journal = makeJournal(print)
  const statuses = new Map(flags.fail)
  const machine = yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: () =>
        startTimeMachine({
          start,
          projectId: project_id,
          witness: journal,
          statusOf: (url) => {
            const { host, hostname } = new URL(url)
            return statuses.get(host) ?? statuses.get(hostname) ?? 204
          },
          onFault: (message) => print(printable(message)),
        }),
      catch: failureOf,
    }),
    ({ close }) => Effect.promise(close),
  )
  const { clock, tenure } = machine
  const { token } = yield* openKey(tenure)
  const api = apiOf(machine, token)
  yield* attempt(() => api.client.projects.create({ project_id }))
  if (project?.time_zone !== undefined || project?.grace !== undefined) {
    const { grace, time_zone } = project
    yield* attempt(() => api.client.projects.update({ project_id, time_zone, grace }))
  }
  const { members, refusals } = yield* load(project_id, rest).pipe(Effect.provideService(Api, api))
  if (members === 0 && refusals.length > 0)
    return yield* usageFailure(`No line is a member: ${describeRefusals(refusals)}.`)
  // Work due before the start is settled before webhooks are registered.
  yield* Effect.tryPromise({ try: () => clock.moveTo(start), catch: failureOf })
  const { disabled, enabled } = yield* subscribe(api.client, project_id, records)

  yield* Console.log(
    printable(
      `A copy of ${project_id} of ${isoOf(start)}: ${pluralize(members, "member")}, ${pluralize(enabled, "webhook")}. Nothing leaves this machine.`,
    ),
  )
  if (disabled > 0) yield* Console.log(`Left out: ${pluralize(disabled, "disabled webhook")}.`)
  if (refusals.length > 0)
    yield* Console.log(printable(`Lines left out: ${describeRefusals(refusals)}.`))
  if (bulkExtensions > 0)
    yield* Console.log(`Bulk extensions before then: ${bulkExtensions}, already in the end dates.`)

  journal.hush()
  if (Option.isSome(until)) yield* playUntil(machine, journal, until.value)

  const { url } = yield* openMachineServer(machine, { port: flags.port, token })
  const name = yield* openProfile(url, token)
  const command = yield* invocation
  // An export from standard input leaves no keys to read.
  const hasKeys = process.stdin.isTTY && flags.from !== "-"
  yield* Console.log(helpOf({ project_id, url, token, name, command, now: clock.now(), hasKeys }))
  journal.tell()

  return yield* hasKeys ? obeyKeys(clock, process.stdin, print) : Effect.never
}, Effect.scoped)
