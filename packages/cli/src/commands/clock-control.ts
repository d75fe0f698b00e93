/** Moves a time machine's clock: by HTTP, for its own pages and for programs with its token, and by keys. */

import { createHash, timingSafeEqual } from "node:crypto"
import type { IncomingMessage, ServerResponse } from "node:http"
import { Setting, latestInstant, readInstant, shownInstant } from "@tenure/core/internal"
import { DurationText, EndDate, InvalidInput, addDuration } from "@tenure/core/store"
import { clockStep } from "@tenure/testing/internal"
import * as Predicate from "effect/Predicate"
import { isoOf } from "../support/text.ts"
import { ClockBusy, type MachineClock } from "./time-machine.ts"

/** How to move the clock. */
export type ClockCommand =
  | { readonly _tag: "Advance"; readonly after: (time: number) => number }
  | { readonly _tag: "To"; readonly time: number }
  | { readonly _tag: "Play"; readonly days: number; readonly seconds: number }
  | { readonly _tag: "Pause" }
  | { readonly _tag: "Step" }

const day = 86_400_000

const onlyTrue = Setting.custom<true, true>("true", (given) => (given === true ? given : undefined))

const body = Setting.object({
  advance: Setting.optional(clockStep),
  to: Setting.optional(
    Setting.custom<string, number>(
      "a time such as 2027-01-01T00:00:00.000Z",
      (given) => (typeof given === "string" ? readInstant(given) : undefined),
      shownInstant,
    ),
  ),
  play: Setting.optional(
    Setting.object({
      days: Setting.withDefault(Setting.integer({ most: 36_525 }), 30),
      seconds: Setting.withDefault(Setting.integer({ most: 3600 }), 60),
    }),
  ),
  pause: Setting.optional(onlyTrue),
  step: Setting.optional(onlyTrue),
})

const onlyOne = new InvalidInput({
  field: "body",
  problem: "must have one of advance, to, play, pause and step",
})

/** Reads a command. Throws `InvalidInput`. */
export const readClockCommand = (given: unknown): ClockCommand => {
  if (!Predicate.isObject(given)) throw onlyOne
  const { advance, pause, play, step, to } = Setting.parse(body, given)
  const commands: ReadonlyArray<ClockCommand | undefined> = [
    advance === undefined ? undefined : { _tag: "Advance", after: advance },
    to === undefined ? undefined : { _tag: "To", time: to },
    play && { _tag: "Play", ...play },
    pause && { _tag: "Pause" },
    step && { _tag: "Step" },
  ]
  const [command, ...others] = commands.filter((one) => one !== undefined)
  if (command === undefined || others.length > 0) throw onlyOne
  return command
}

/** Moves to a time given in a command's field. */
const moveTo = (clock: MachineClock, field: "advance" | "to", time: number): Promise<void> => {
  if (time >= clock.now() && time <= clock.end) return clock.moveTo(time)
  const problem = `must lead to a time from ${isoOf(clock.now())} to ${isoOf(clock.end)}`
  throw new InvalidInput({ field, problem })
}

/** Moves a clock. Rejects with `ClockBusy`, or with `InvalidInput` for a time in the past or after the clock's end. */
export const moveClock = async (clock: MachineClock, command: ClockCommand): Promise<void> => {
  switch (command._tag) {
    case "Advance":
      return moveTo(clock, "advance", command.after(clock.now()))
    case "To":
      return moveTo(clock, "to", command.time)
    case "Play":
      return clock.play(command.days * day, command.seconds)
    case "Pause":
      return clock.pause()
    case "Step":
      return clock.step()
  }
}

/** Returns a clock's state as JSON. */
const stateOf = async (clock: MachineClock) => {
  const next = await clock.next()
  return {
    now: isoOf(clock.now()),
    start: isoOf(clock.start),
    next: next === undefined ? null : { ...next, at: isoOf(next.at) },
    playing: clock.isPlaying(),
  }
}

/** The clock endpoint's path. */
export const clockPath = "/dev/clock"

const maxBytes = 1024

/** Returns a body as text, or `undefined` if it is too long. */
const readBody = async (request: IncomingMessage): Promise<string | undefined> => {
  const parts: Array<Buffer> = []
  let bytes = 0
  for await (const part of request) {
    const chunk = Buffer.from(part)
    bytes += chunk.length
    if (bytes > maxBytes) return undefined
    parts.push(chunk)
  }
  return Buffer.concat(parts).toString()
}

const digest = (text: string): Buffer => createHash("sha256").update(text).digest()

const isToken = ({ headers }: IncomingMessage, token: string): boolean =>
  timingSafeEqual(digest(headers.authorization ?? ""), digest(`Bearer ${token}`))

// Another host name may belong to a foreign page that resolves to this machine (DNS rebinding).
const loopback = /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?$/i

const isOwnPage = ({ headers }: IncomingMessage): boolean =>
  headers["sec-fetch-site"] === "same-origin" && loopback.test(headers.host ?? "")

// A cross-site form cannot send this content type.
const json = /^application\/json *(?:;|$)/i

/** A response's status and body. */
interface Reply {
  readonly status: number
  readonly body: object
}

const refuse = (status: number, message: string): Reply => ({ status, body: { error: message } })

const refuseFault = (fault: unknown): Reply => {
  if (fault instanceof ClockBusy) return refuse(409, fault.message)
  if (fault instanceof SyntaxError) return refuse(400, "The body must be JSON.")
  if (fault instanceof InvalidInput) return refuse(400, fault.message)
  return refuse(500, fault instanceof Error ? fault.message : "The clock has stopped.")
}

/**
 * Makes a request handler for a clock.
 *
 * @param token - lets programs in
 */
export const makeClockHandler = (clock: MachineClock, token: string) => {
  const move = async (request: IncomingMessage): Promise<Reply> => {
    if (!json.test(request.headers["content-type"] ?? ""))
      return refuse(415, "The content type must be application/json.")
    const text = await readBody(request)
    if (text === undefined) return refuse(413, `The body must be at most ${maxBytes} bytes.`)
    await moveClock(clock, readClockCommand(JSON.parse(text)))
    return { status: 200, body: await stateOf(clock) }
  }

  const replyTo = async (request: IncomingMessage): Promise<Reply> => {
    if (!isToken(request, token) && !isOwnPage(request))
      return refuse(403, "Send the printed token as Authorization: Bearer.")
    if (request.method === "GET") return { status: 200, body: await stateOf(clock) }
    return request.method === "POST" ? move(request) : refuse(405, "Send GET or POST.")
  }

  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const reply = await replyTo(request).catch(refuseFault)
    response.writeHead(reply.status, {
      "Content-Type": "application/json",
      "Cache-Control": "no-store",
      "X-Content-Type-Options": "nosniff",
      ...(reply.status === 405 && { Allow: "GET, POST" }),
    })
    response.end(JSON.stringify(reply.body))
  }
}

/** A terminal's input, as `process.stdin` is one. */
export interface KeyInput {
  readonly setRawMode: (isRaw: boolean) => unknown
  readonly on: (event: "data", listener: (bytes: Buffer) => void) => unknown
  readonly off: (event: "data", listener: (bytes: Buffer) => void) => unknown
  readonly resume: () => unknown
  readonly pause: () => unknown
}

/** Describes the keys for people. */
export const keysHelp =
  "space plays a month in a minute, and pauses; n goes to the next event; d, w and m go on by a day, a week and a month; q ends."

const afterMonth = (now: number): number =>
  addDuration(EndDate(now), DurationText("P1M")) ?? latestInstant

/** Returns a key's command; `undefined` if it has none. */
export const commandOfKey = (
  key: string,
  { isPlaying, now }: Pick<MachineClock, "isPlaying" | "now">,
): ClockCommand | "end" | undefined => {
  switch (key) {
    case " ":
      return isPlaying() ? { _tag: "Pause" } : { _tag: "Play", days: 30, seconds: 60 }
    case "n":
      return { _tag: "Step" }
    case "d":
      return { _tag: "Advance", after: (time) => time + day }
    case "w":
      return { _tag: "Advance", after: (time) => time + 7 * day }
    case "m":
      return { _tag: "To", time: afterMonth(now()) }
    case "q":
    // In raw mode, Ctrl+C and Ctrl+D are keys.
    case "\u0003":
    case "\u0004":
      return "end"
    default:
      return undefined
  }
}

/** Listens to keys. Returns a function to stop listening. */
export const listenToKeys = (input: KeyInput, onKey: (key: string) => void): (() => void) => {
  const listen = (bytes: Buffer): void => {
    // One character; other keys, such as arrows, send longer sequences.
    if (bytes.length === 1) onKey(bytes.toString())
  }
  input.setRawMode(true)
  input.on("data", listen)
  input.resume()
  return () => {
    input.off("data", listen)
    input.setRawMode(false)
    input.pause()
  }
}
