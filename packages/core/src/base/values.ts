/** Branded values: project and API key ids, UUIDs, how own properties are read, and what must hold of values. */

import type { Branded } from "effect/Brand"
import { TaggedError } from "./tagged-error.ts"

/**
 * A constructor that throws a `TypeError` on an invalid value, with a guard. Constructors from
 * `effect/Brand` load Schema's syntax tree, a third of the whole library's import time.
 */
export interface BrandConstructor<A, B extends A> {
  (value: A): B
  readonly is: (value: A) => value is B
  /** A valid value's form, for error messages. */
  readonly expected: string
}

/**
 * Makes the constructor for a brand that only some values may carry.
 *
 * @param name - the values' name, for error messages
 * @param expected - a valid value's form, for error messages
 * @param isValid - tells whether a value may carry the brand
 */
export const brandedWhere = <A, B extends A>(
  name: string,
  expected: string,
  isValid: (value: A) => boolean,
): BrandConstructor<A, B> => {
  const is = (value: A): value is B => isValid(value)
  const make = (value: A): B => {
    if (!is(value)) throw new TypeError(`invalid ${name}: expected ${expected}`)
    return value
  }
  return Object.assign(make, { is, expected })
}

/** Makes the constructor for a brand that every value may carry. It does nothing at run time. */
export function branded<A, B extends A>(): (value: A) => B
export function branded<A>(): (value: A) => A {
  return (value) => value
}

/** Returns an own property, or `undefined` without one. */
export const getOwn = <A extends object, Name extends keyof A>(
  object: A,
  name: Name,
): A[Name] | undefined => (Object.hasOwn(object, name) ? object[name] : undefined)

// A literal without a prototype would be a dictionary, slow to fill and to read.
const bare: object = { __proto__: null }

/**
 * Copies an object without its prototype, so that only its own properties are read. A value other than
 * an object, such as a missing argument in plain JavaScript, has none.
 */
export const copyOwn = <A extends object>(object: A): A =>
  Object.assign(Object.create(bare), object)

/** A valid id's form, for error messages. */
export const identifierFormat = "1 to 255 characters, none of them a control character"

// PostgreSQL cannot store NUL, control characters break logs apart, and a lone surrogate has no
// UTF-8 encoding.
const pattern = /^[^\p{Cc}\p{Cs}]{1,255}$/u

/** Tells whether a value can be stored and logged as an id. */
export const isIdentifier = (value: unknown): value is string =>
  typeof value === "string" && pattern.test(value)

/**
 * API key id: 1 to 255 characters, no control characters. Keys issued by Tenure have a UUID. Unlike the
 * token, the id is not secret.
 */
export type ApiKeyId = Branded<string, "@tenure/core/ApiKeyId">

/** Brands an API key's id. Throws a `TypeError` if it is invalid. */
export const ApiKeyId = brandedWhere<string, ApiKeyId>("API key id", identifierFormat, isIdentifier)

/**
 * Project id: 1 to 255 characters, no control characters. `.` and `..` are invalid because they have a
 * special meaning in a path.
 */
export type ProjectId = Branded<string, "@tenure/core/ProjectId">

/** Brands text as a project id. Throws a `TypeError` if it is invalid. */
export const ProjectId = brandedWhere<string, ProjectId>(
  "project id",
  `${identifierFormat}, and not "." or ".."`,
  (id) => id !== "." && id !== ".." && isIdentifier(id),
)

/** The project does not exist. */
export class ProjectNotFound extends TaggedError("ProjectNotFound")<{
  /** The id without a project. */
  readonly projectId: string
}> {
  override get message(): string {
    return `The project "${this.projectId}" does not exist.`
  }
}

/**
 * Caches the latest result of a pure function that takes a number. Text for the current instant is
 * formatted repeatedly: by each request in the same millisecond, and twice by a request setting an end
 * date.
 */
export const memoizeLatest = <N extends number, A>(f: (argument: N) => A): ((argument: N) => A) => {
  let latest: { readonly argument: N; readonly result: A } | undefined
  return (argument) => {
    if (latest?.argument === argument) return latest.result
    const result = f(argument)
    latest = { argument, result }
    return result
  }
}

/** Caches a pure function's results by object, each while its object is in use. */
export const memoizeObject = <O extends object, A>(f: (argument: O) => A): ((argument: O) => A) => {
  const results = new WeakMap<O, { readonly result: A }>()
  return (argument) => {
    const known = results.get(argument)
    if (known !== undefined) return known.result
    const result = f(argument)
    results.set(argument, { result })
    return result
  }
}

/**
 * Returns a text in one piece, to be kept for long. Node's UUIDs, for example, are concatenated from
 * many parts, and take eight times as much memory.
 */
export const joinedText = (text: string): string => [text.slice(0, 1), text.slice(1)].join("")

/** The common prefix of all ids in a millisecond. */
const prefixOf = memoizeLatest((now: number): string => {
  const time = now.toString(16).padStart(12, "0")
  return `${time.slice(0, 8)}-${time.slice(8)}-7`
})

/**
 * Makes a version 7 UUID. UUIDs from later milliseconds sort after earlier ones.
 *
 * @param now - milliseconds since the epoch
 */
export const v7 = (crypto: { readonly randomUUID: () => string }, now: number): string =>
  // Joined into one text, because a concatenation keeps its parts as long as the id is stored.
  [prefixOf(now), crypto.randomUUID().slice(15)].join("")

/**
 * Makes a version 8 UUID from a digest.
 *
 * @param digest - at least 16 bytes
 */
export const v8 = (digest: Uint8Array): string => {
  const hex = Array.from(digest.subarray(0, 16), (byte) => byte.toString(16).padStart(2, "0")).join(
    "",
  )
  const variant = "89ab"[Number.parseInt(hex.slice(16, 17), 16) % 4]
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Tells whether text is a UUID in lower case. */
export const isUuid = (text: string): boolean => uuidPattern.test(text)

/**
 * Throws an `Error` if a condition is violated that every caller must uphold.
 *
 * Call it in code that runs in an Effect, where the error becomes a defect. In a timer, a microtask or a fiber
 * observer, it would end the process.
 *
 * @param message - what was wrong; a constant, because the assertion must cost nothing if it holds
 */
export const invariant: (holds: boolean, message: string) => asserts holds = (holds, message) => {
  if (!holds) throw new Error(message)
}
