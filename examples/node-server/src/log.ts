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

const isTerminal = process.stdout.isTTY === true

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

type Level = "info" | "warn" | "error"

const levelOf = (status: number): Level => {
  if (status < 500) return "info"
  // The database is away for the moment.
  return status === 503 ? "warn" : "error"
}

/** Logs a response. */
export const access = (record: AccessRecord): void => {
  const { address, durationMillis, keyId, method, path, requestId, status } = record
  const duration = Math.round(durationMillis * 1000) / 1000
  print(
    isTerminal
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
  const known = Object.entries(fields).filter(([, value]) => value !== undefined)
  print(
    isTerminal
      ? [now(), level, message, ...known.map(([name, value]) => `${name}: ${String(value)}`)].join(
          "  ",
        )
      : JSON.stringify({ time: now(), level, message, ...fields }),
  )
}

/** Logs why a request has failed for the moment. Defects are in the log anyway. */
export const fault = ({ cause, isDefect, message, requestId }: Fault): void => {
  if (isDefect || requestId === undefined) return
  log("warn", message, { request_id: requestId, cause: reasonsOf(cause) })
}

/** Logs what an operator may want to know. */
export const info = (message: string): void =>
  isTerminal ? print(message) : log("info", message, {})

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
