/** The log: one line of JSON for each entry, or a readable line on a terminal. */

import { createWriteStream } from "node:fs"
import type { AccessRecord, Fault } from "@tenure/core"
import * as Cause from "effect/Cause"
import * as Logger from "effect/Logger"
import { CurrentLogAnnotations } from "effect/References"
import { printable } from "./printable.ts"
import { reasonsOf } from "./reasons.ts"

// Requests do not wait for a slow reader of the log. If more bytes than this wait to be read, further
// lines are dropped.
const maxPending = 1_000_000

/** The levels of lines, from the least important on. */
export const levels = ["info", "warn", "error"] as const

/** Which requests have a line: those with errors are answered 400 or above. */
export const loggedRequests = ["all", "errors", "none"] as const

/** How lines are written. */
export const formats = ["json", "text"] as const

/** What is logged, and how. */
interface LogSettings {
  readonly logLevel: Level
  readonly logRequests: (typeof loggedRequests)[number]
  readonly logFormat: (typeof formats)[number] | undefined
}

let settings: LogSettings = { logLevel: "info", logRequests: "all", logFormat: undefined }

/** Says what is logged from now on, and how. */
export const configure = (given: LogSettings): void => {
  settings = given
}

const isText = (): boolean =>
  (settings.logFormat ?? (process.stdout.isTTY ? "text" : "json")) === "text"

/** Whether lines of a level are written. Levels that are none of these are below or above all of them. */
const isLogged = (level: string): boolean => {
  const place = levels.findIndex((one) => one === level)
  if (place === -1) return level === "fatal" || settings.logLevel === "info"
  return place >= levels.indexOf(settings.logLevel)
}

const isRequestLogged = (status: number): boolean =>
  settings.logRequests === "all" || (settings.logRequests === "errors" && status >= 400)

const output = createWriteStream("", { fd: 1, autoClose: false })
output.on("error", () => {})

// Lines are written together, because a write takes longer than many lines: after so many milliseconds,
// or at once when there are so many characters.
const gatherMillis = 10
const mostGathered = 16_384

let lines = ""

const writeLines = (): void => {
  if (lines !== "") output.write(lines)
  lines = ""
}

/** Writes a line of plain text. What a terminal would not show as it is, is escaped as in JSON. */
export const print = (text: string): void => {
  if (output.writableLength + lines.length >= maxPending) return
  if (lines === "") setTimeout(writeLines, gatherMillis)
  lines += `${printable(text)}\n`
  if (lines.length >= mostGathered) writeLines()
}

/** Waits until all lines are written, for at most a second. */
export const flush = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, 1000).unref()
    output.end(lines, () => resolve())
    lines = ""
  })

let latest = { at: NaN, text: "" }

/** The time as text, which takes longer to format than the rest of a line: once a millisecond. */
const now = (): string => {
  const at = Date.now()
  if (at !== latest.at) latest = { at, text: new Date(at).toISOString() }
  return latest.text
}

type Level = (typeof levels)[number]

const levelOf = (status: number): Level => {
  if (status < 500) return "info"
  // The database is away for the moment.
  return status === 503 ? "warn" : "error"
}

/** Logs a response. */
export const access = (record: AccessRecord): void => {
  const { address, durationMillis, keyId, method, path, requestId, status } = record
  if (!isRequestLogged(status) || !isLogged(levelOf(status))) return
  const duration = Math.round(durationMillis * 1000) / 1000
  print(
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

/** Logs a message with fields that can be searched for. */
const log = (level: string, message: string, fields: Readonly<Record<string, unknown>>): void => {
  if (!isLogged(level)) return
  const known = Object.entries(fields).filter(([, value]) => value !== undefined)
  print(
    isText()
      ? [now(), level, message, ...known.map(([name, value]) => `${name}: ${String(value)}`)].join(
          "  ",
        )
      : JSON.stringify({ time: now(), level, message, ...fields }),
  )
}

/** Logs why a request has failed for the moment. Tenure itself logs defects, and the beginning and end of outages. */
export const fault = ({ cause, isDefect, message, requestId }: Fault): void => {
  if (isDefect || requestId === undefined) return
  log("warn", message, { request_id: requestId, cause: reasonsOf(cause) })
}

/** Logs what an operator may want to know. */
export const info = (message: string): void => {
  if (!isText()) log("info", message, {})
  else if (isLogged("info")) print(message)
}

/** Logs what an operator should look at, and why. */
export const warn = (message: string, cause?: string): void => log("warn", message, { cause })

const words = (message: unknown): string =>
  (Array.isArray(message) ? message : [message]).map(String).join(" ")

/** Logs the messages of Tenure: failures, and deliveries and webhooks that get no further attempts. */
export const logger = Logger.make(({ cause, fiber, logLevel, message }) => {
  const isDefect = Cause.hasDies(cause)
  const reasons = isDefect ? Cause.pretty(cause) : reasonsOf(Cause.squash(cause))
  log(logLevel.toLowerCase(), words(message), {
    ...fiber.getRef(CurrentLogAnnotations),
    cause: cause.reasons.length === 0 ? undefined : reasons,
  })
})
