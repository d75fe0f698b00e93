/** The host's own logger, in place of the console. */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Logger from "effect/Logger"
import * as Pipeable from "effect/Pipeable"
import * as Predicate from "effect/Predicate"
import * as References from "effect/References"
import * as Setting from "../base/setting.ts"

/** What a log entry says besides its message. Contains no secrets. */
export interface Fields {
  /** What went wrong, as text with the stack. */
  readonly cause?: string
  /** For example `request_id`, `project_id`, `webhook_id`, `event_id` or `status`. */
  readonly [name: string]: unknown
}

type Write = (fields: Fields, message: string) => void

/** A logger that takes the fields first, and then the message, as those of pino and Fastify do. */
export interface HostLogger {
  readonly info: Write
  readonly warn: Write
  readonly error: Write
}

const levels = ["info", "warn", "error"] as const

type Level = (typeof levels)[number]

const isLogger = (given: unknown): boolean =>
  Predicate.isObjectKeyword(given) &&
  levels.every((level) => Predicate.isFunction(Reflect.get(given, level)))

/** The definition of the option. */
export const hostLoggerOption: Setting.Setting<HostLogger, HostLogger> = Setting.guarded(
  "a logger with the methods info, warn and error",
  isLogger,
)

const levelOf = (level: Logger.Options<unknown>["logLevel"]): Level => {
  switch (level) {
    case "Fatal":
    case "Error":
      return "error"
    case "Warn":
      return "warn"
    default:
      return "info"
  }
}

const fieldsOf = ({ cause, fiber }: Logger.Options<unknown>): Fields => ({
  ...fiber.getRef(References.CurrentLogAnnotations),
  ...(cause.reasons.length > 0 && { cause: Cause.pretty(cause) }),
})

const messageOf = (message: unknown): string =>
  Array.isArray(message) ? message.join(" ") : String(message)

/** Passes on the entries of the log to a host's logger. */
class Forwarding extends Pipeable.Class implements Logger.Logger<unknown, void> {
  readonly "~effect/Logger" = "~effect/Logger"
  readonly log: (entry: Logger.Options<unknown>) => void

  constructor(logger: HostLogger, replaced: ReadonlySet<Logger.Logger<unknown, unknown>>) {
    super()
    this.log = (entry) => {
      try {
        logger[levelOf(entry.logLevel)](fieldsOf(entry), messageOf(entry.message))
      } catch {
        for (const other of replaced) other.log(entry)
      }
    }
  }
}

/**
 * Passes on every entry of the log to the logger of the host. If that throws, the loggers that it
 * replaces get the entry: the console, by default.
 */
export const hostLoggerLayer = (logger: HostLogger): Layer.Layer<never> =>
  Layer.effect(
    References.CurrentLoggers,
    Effect.map(
      References.CurrentLoggers,
      (replaced) => new Set([new Forwarding(logger, replaced)]),
    ),
  )
