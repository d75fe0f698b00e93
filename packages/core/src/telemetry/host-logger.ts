/** Logs through the host's own logger instead of the console. */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Logger from "effect/Logger"
import * as Pipeable from "effect/Pipeable"
import * as Predicate from "effect/Predicate"
import * as References from "effect/References"
import * as Setting from "../base/setting.ts"

/** A log entry's fields besides its message. Contains no secrets. */
export interface Fields {
  /** The error as text, with its stack. */
  readonly cause?: string
  /** For example `request_id`, `project_id`, `webhook_id`, `event_id` or `status`. */
  readonly [name: string]: unknown
}

type Write = (fields: Fields, message: string) => void

/** A logger called with the fields first, then the message, as in pino and Fastify. */
export interface HostLogger {
  /** Logs what an operator may want to know. */
  readonly info: Write
  /** Logs what may need attention. */
  readonly warn: Write
  /** Logs what needs attention. */
  readonly error: Write
}

const levels = ["info", "warn", "error"] as const

type Level = (typeof levels)[number]

const isLogger = (given: unknown): boolean =>
  Predicate.isObjectKeyword(given) &&
  levels.every((level) => Predicate.isFunction(Reflect.get(given, level)))

/** The option for the logger. */
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

/** Passes log entries to a host's logger. */
class Forwarding extends Pipeable.Class implements Logger.Logger<unknown, void> {
  readonly "~effect/Logger" = "~effect/Logger"
  readonly log: (entry: Logger.Options<unknown>) => void

  constructor(logger: HostLogger, replaced: ReadonlySet<Logger.Logger<unknown, unknown>>) {
    super()
    this.log = (entry) => {
      const logElsewhere = () => {
        for (const other of replaced) other.log(entry)
      }
      try {
        const write = levelOf(entry.logLevel)
        const result: unknown = logger[write](fieldsOf(entry), messageOf(entry.message))
        // An unhandled rejection can end the process.
        if (Predicate.isPromiseLike(result)) result.then(undefined, logElsewhere)
      } catch {
        logElsewhere()
      }
    }
  }
}

/**
 * Passes every log entry to the host's logger. If that throws or rejects, the replaced loggers get the entry: the
 * console, by default.
 */
export const hostLoggerLayer = (logger: HostLogger): Layer.Layer<never> =>
  Layer.effect(
    References.CurrentLoggers,
    Effect.map(
      References.CurrentLoggers,
      (replaced) => new Set([new Forwarding(logger, replaced)]),
    ),
  )
