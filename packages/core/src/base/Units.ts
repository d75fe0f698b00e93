/**
 * Units of time. Each is a brand on a number, so that passing one where another is expected does not
 * compile. At run time there are only numbers.
 */

import type { Branded } from "effect/Brand"
import { nominal } from "./Refined.ts"

/** An instant since the epoch, or a duration, in milliseconds. */
export type Millis = Branded<number, "@tenure/core/Millis">

/** An instant since the epoch, or a duration, in whole microseconds. */
export type Micros = Branded<number, "@tenure/core/Micros">

/** Brands a number as milliseconds. */
export const Millis = nominal<number, Millis>()

/** Brands a number as microseconds. */
export const Micros = nominal<number, Micros>()

/**
 * Brands the results of a function as microseconds. Calls of the function cost nothing more, unlike a
 * call of `Micros` for each result.
 */
export function inMicros<Args extends ReadonlyArray<unknown>>(
  f: (...args: Args) => number,
): (...args: Args) => Micros
export function inMicros(f: () => number): () => number {
  return f
}

/** Converts milliseconds to microseconds. */
export const toMicros = inMicros((millis: Millis) => millis * 1000)

/** Converts microseconds to seconds, rounded up. */
export const toSeconds = (micros: Micros): number => Math.ceil(micros / 1_000_000)

/** Adds two durations, or a duration to an instant. */
export const add = inMicros((one: Micros, other: Micros) => one + other)

/** Subtracts a duration, or an earlier instant. */
export const subtract = inMicros((one: Micros, other: Micros) => one - other)
