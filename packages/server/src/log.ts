/** The log on standard output: a line for each entry, as JSON or as text that a terminal shows safely. */

import { createWriteStream } from "node:fs"
import type { AccessRecord, Fault } from "@tenure/core"
import * as Cause from "effect/Cause"
import * as Logger from "effect/Logger"
import { CurrentLogAnnotations } from "effect/References"

// A slow reader of the log does not delay requests: while this many bytes wait for it, lines are dropped.
const maxPending = 1_000_000

/** The levels, in ascending order. */
export const logLevels = ["info", "warn", "error"] as const

/** Requests to log; `errors` are responses with a status from 400 on. */
export const loggedRequests = ["all", "errors", "none"] as const

/** The formats for lines. */
export const logFormats = ["json", "text"] as const

/** The settings of the log. */
interface LogSettings {
  readonly logLevel: Level
  readonly logRequests: (typeof loggedRequests)[number]
  readonly logFormat: (typeof logFormats)[number] | undefined
}

let settings: LogSettings = { logLevel: "info", logRequests: "all", logFormat: undefined }

/** Applies settings to all further entries. */
export const configureLog = (given: LogSettings): void => {
  settings = given
}

const isText = (): boolean =>
  (settings.logFormat ?? (process.stdout.isTTY ? "text" : "json")) === "text"

/** Tells whether a level is logged. Effect has further levels: `fatal` is above all, the others below. */
const isLogged = (level: string): boolean => {
  const place = logLevels.findIndex((one) => one === level)
  if (place === -1) return level === "fatal" || settings.logLevel === "info"
  return place >= logLevels.indexOf(settings.logLevel)
}

const isRequestLogged = (status: number): boolean =>
  settings.logRequests === "all" || (settings.logRequests === "errors" && status >= 400)

const output = createWriteStream("", { fd: 1, autoClose: false })
output.on("error", () => {})

// A write costs more than many lines, so lines are written together: after 10 ms, or when 16,384 characters
// are waiting.
const gatherMillis = 10
const maxGathered = 16_384

let lines = ""

const writeLines = (): void => {
  if (lines !== "") output.write(lines)
  lines = ""
}

// Line breaks and tabs may stay. Other control characters, and those for reordering or hiding text, can
// make a terminal show something else.
const unprintable = /[^\P{C}\n\t]/gu

// Matches most lines in less than half the time.
const plain = /^[\x20-\x7e]*$/

const escape = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`,
  ).join("")

/** Escapes characters as JSON does if a terminal would not show them. */
export const printable = (text: string): string =>
  plain.test(text) ? text : text.replaceAll(unprintable, escape)

/** Writes a line of plain text, escaped for terminals. */
export const printLine = (text: string): void => {
  if (output.writableLength + lines.length >= maxPending) return
  if (lines === "") setTimeout(writeLines, gatherMillis)
  lines += `${printable(text)}\n`
  if (lines.length >= maxGathered) writeLines()
}

/** Waits until all lines are written, for at most a second. No line can be written afterwards. */
export const flushLog = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, 1000).unref()
    output.end(lines, () => resolve())
    lines = ""
  })

let latest = { at: NaN, text: "" }

/** Formats the time, once a millisecond, because this takes longer than the rest of a line. */
const now = (): string => {
  const at = Date.now()
  if (at !== latest.at) latest = { at, text: new Date(at).toISOString() }
  return latest.text
}

type Level = (typeof logLevels)[number]

const levelOf = (status: number): Level => {
  if (status < 500) return "info"
  // The database does not answer at the moment.
  return status === 503 ? "warn" : "error"
}

/** Logs a response. */
export const logAccess = (record: AccessRecord): void => {
  const { address, durationMillis, keyId, method, path, requestId, status } = record
  if (!isRequestLogged(status) || !isLogged(levelOf(status))) return
  const duration = Math.round(durationMillis * 1000) / 1000
  printLine(
    isText()
      ? `${now()} ${status} ${method} ${path} ${duration} ms  address ${address}  key ${keyId ?? "-"}  request ${requestId}`
      : JSON.stringify({
          time: now(),
          level: levelOf(status),
          request_id: requestId,
          method,
          path,
          status,
          duration_ms: duration,
          address,
          key_id: keyId ?? null,
        }),
  )
}

// A chain of causes may be circular.
const maxReasons = 8

/** Returns the messages of an error and its causes. */
const messagesOf = (error: unknown, room = maxReasons): ReadonlyArray<string> => {
  if (room === 0 || error === undefined) return []
  if (!(error instanceof Error)) return [String(error)]
  const own = error.message.replace(/\.$/, "")
  return [own, ...messagesOf(error.cause, room - 1)]
}

/** Joins the messages of an error and its causes in one line, without repetitions. */
export const reasonsOf = (error: unknown): string => [...new Set(messagesOf(error))].join(": ")

/** Logs a message with fields to search for. */
const log = (level: string, message: string, fields: Readonly<Record<string, unknown>>): void => {
  if (!isLogged(level)) return
  const known = Object.entries(fields).filter(([, value]) => value !== undefined)
  printLine(
    isText()
      ? [now(), level, message, ...known.map(([name, value]) => `${name}: ${String(value)}`)].join(
          "  ",
        )
      : JSON.stringify({ time: now(), level, message, ...fields }),
  )
}

/** Logs the reason for a temporary failure. Tenure itself logs defects, and when outages begin and end. */
export const logFault = ({ cause, isDefect, message, requestId }: Fault): void => {
  if (isDefect || requestId === undefined) return
  log("warn", message, { request_id: requestId, cause: reasonsOf(cause) })
}

/** Logs a message for the operator. */
export const logInfo = (message: string): void => {
  if (!isText()) log("info", message, {})
  else if (isLogged("info")) printLine(message)
}

/** Logs a problem for the operator to look at, with its cause. */
export const logWarning = (message: string, cause?: string): void => log("warn", message, { cause })

const words = (message: unknown): string =>
  (Array.isArray(message) ? message : [message]).map(String).join(" ")

/** Logs messages from Tenure: failures, failed deliveries, disabled webhooks. */
export const tenureLogger = Logger.make(({ cause, fiber, logLevel, message }) => {
  const isDefect = Cause.hasDies(cause)
  const reasons = isDefect ? Cause.pretty(cause) : reasonsOf(Cause.squash(cause))
  log(logLevel.toLowerCase(), words(message), {
    ...fiber.getRef(CurrentLogAnnotations),
    cause: cause.reasons.length === 0 ? undefined : reasons,
  })
})
