/** Logs: one JSON object a line, or a readable line where a person looks on. */

import { createWriteStream } from "node:fs"
import type { AccessRecord } from "@tenure/core/Handler"
import * as Cause from "effect/Cause"
import * as Logger from "effect/Logger"

// Whoever reads the log may be slow or asleep; requests do not wait for that. Beyond this many
// bytes that are not read yet, lines are dropped.
const maxPending = 1_000_000

const isTerminal = process.stdout.isTTY === true

const output = createWriteStream("", { fd: 1, autoClose: false })
output.on("error", () => {})

/** Writes a line of plain text. */
export const print = (text: string): void => {
  if (output.writableLength < maxPending) output.write(`${text}\n`)
}

/** Waits until all lines are written, a second at most. */
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

/** Logs what Tenure itself has to say: faults, and deliveries that were given up. */
export const logger = Logger.make(({ cause, logLevel, message }) => {
  const level = logLevel.toLowerCase()
  const fault = cause.reasons.length === 0 ? undefined : Cause.pretty(cause)
  print(
    isTerminal
      ? [now(), level, words(message), fault].join(" ")
      : JSON.stringify({ time: now(), level, message: words(message), cause: fault }),
  )
})
