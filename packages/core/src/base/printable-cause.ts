/** Copies errors for loggers: hosts throw anything. */

import * as Cause from "effect/Cause"
import { formatJson } from "effect/Formatter"
import * as Predicate from "effect/Predicate"

// A cause chain may be circular, and arbitrarily long.
const maxErrors = 8

const maxTextLength = 4000

const clip = (text: string): string =>
  text.length > maxTextLength ? `${text.slice(0, maxTextLength)}…` : text

/** Reads from an error. Getters, proxy traps and `toString` may throw. */
const attempt = <A>(read: () => A): A | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}

const property = (error: object, name: string): unknown =>
  attempt<unknown>(() => Reflect.get(error, name))

const textOf = (error: object, name: string): string | undefined => {
  const text = property(error, name)
  return typeof text === "string" ? clip(text) : undefined
}

const plainObject = /^\[object \w+\]$/

/** The errors in an `AggregateError`. */
const partsOf = (error: object): ReadonlyArray<unknown> | undefined =>
  attempt(() => (error instanceof AggregateError ? error.errors.slice(0, maxErrors) : undefined))

const messageOf = (error: unknown, room = maxErrors): string => {
  if (!Predicate.isObjectKeyword(error)) return clip(String(error))
  const message = textOf(error, "message")
  const parts = message === "" && room > 1 ? partsOf(error) : undefined
  if (parts !== undefined) return clip(parts.map((part) => messageOf(part, room / 2)).join(", "))
  if (message !== undefined) return message
  const text = attempt(() => String(error))
  const isTelling = text !== undefined && !plainObject.test(text)
  return clip((isTelling ? text : attempt(() => formatJson(error))) ?? "It cannot be printed.")
}

/** Copies an error and its causes, `room` errors at most. */
const copyOf = (error: unknown, room: number): Error => {
  const given = Predicate.isObjectKeyword(error) ? error : {}
  const cause = room > 1 ? property(given, "cause") : undefined
  const copy = new Error(messageOf(error))
  if (cause !== undefined && cause !== null) copy.cause = copyOf(cause, room - 1)
  copy.name = textOf(given, "name") ?? copy.name
  copy.stack = textOf(given, "stack") ?? `${copy.name}: ${copy.message}`
  return copy
}

/**
 * Copies an error with its name, message, stack and causes as plain texts, each up to 4,000 characters.
 * A cause chain ends after the eighth error.
 */
export const printableError = (error: unknown): Error => copyOf(error, maxErrors)

const copyReason = (reason: Cause.Reason<unknown>): Cause.Reason<Error> => {
  const annotations = Cause.reasonAnnotations(reason)
  switch (reason._tag) {
    case "Fail":
      return Cause.makeFailReason(printableError(reason.error)).annotate(annotations)
    case "Die":
      return Cause.makeDieReason(printableError(reason.defect)).annotate(annotations)
    case "Interrupt":
      return reason
  }
}

/** Copies a cause for a log, with printable errors. */
export const printableCause = (cause: Cause.Cause<unknown>): Cause.Cause<Error> =>
  Cause.fromReasons(cause.reasons.map(copyReason))
