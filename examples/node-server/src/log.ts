/** The log: one line of JSON for each entry, or a readable line on a terminal. */

import { createWriteStream } from "node:fs"
import type { AccessRecord } from "@tenure/core/Handler"
import * as Cause from "effect/Cause"
import * as Logger from "effect/Logger"
import { printable } from "./printable.ts"

// Requests do not wait for a slow reader of the log. If more bytes than this wait to be read, further
// lines are dropped.
const maxPending = 1_000_000

const isTerminal = process.stdout.isTTY === true

const output = createWriteStream("", { fd: 1, autoClose: false })
output.on("error", () => {})

/** Writes a line of plain text. What a terminal would not show as it is, is escaped as in JSON. */
export const print = (text: string): void => {
  if (output.writableLength < maxPending) {
    output.write(`${printable(text)}\n`)
  }
}

/** Waits until all lines are written, for at most a second. */
export const flush = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, 1000).unref()
    output.end(() => resolve())
  })

const now = (): string => new Date().toISOString()

/** Logs a response. */
export const access = (record: AccessRecord): void => {
  const { durationMillis, keyId, method, path, requestId, status } = record
  const duration = Number(durationMillis.toFixed(3))
  print(
    isTerminal
      ? `${now()} ${status} ${method} ${path} ${duration} ms  key ${keyId ?? "-"}  request ${requestId}`
      : JSON.stringify({
          time: now(),
          level: "info",
          request_id: requestId,
          method,
          path,
          status,
          duration_ms: duration,
          key_id: keyId ?? null,
        }),
  )
}

const words = (message: unknown): string =>
  (Array.isArray(message) ? message : [message]).map(String).join(" ")

/** Logs the messages of Tenure, for example failures and deliveries that ended as failed. */
export const logger = Logger.make(({ cause, logLevel, message }) => {
  const level = logLevel.toLowerCase()
  const fault = cause.reasons.length === 0 ? undefined : Cause.pretty(cause)
  print(
    isTerminal
      ? [now(), level, words(message), fault].join(" ")
      : JSON.stringify({ time: now(), level, message: words(message), cause: fault }),
  )
})
