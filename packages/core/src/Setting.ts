/** Reading options: where one is not what it has to be, a clear error names it. */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { InvalidInput } from "./InvalidInput.ts"

/** The least and the greatest value that an option may have. */
export interface Range {
  readonly least: number
  readonly most: number
}

const day = 86_400_000

const inRange = (
  field: string,
  value: number,
  { least, most }: Range,
  what: string,
): Effect.Effect<number, InvalidInput> =>
  value >= least && value <= most
    ? Effect.succeed(value)
    : Effect.fail(
        new InvalidInput({ field, message: `${field}: expected ${what} from ${least} to ${most}` }),
      )

/** A whole number; 1 to 1,000,000,000 by default. */
export const count = (
  field: string,
  value: number,
  range: Range = { least: 1, most: 1_000_000_000 },
): Effect.Effect<number, InvalidInput> =>
  inRange(field, Number.isInteger(value) ? value : NaN, range, "a whole number")

/** A duration in milliseconds; 1 ms to 366 days by default. */
export const millis = (
  field: string,
  value: Duration.Input,
  range: Range = { least: 1, most: 366 * day },
): Effect.Effect<number, InvalidInput> =>
  inRange(
    field,
    Option.match(Duration.fromInput(value), { onNone: () => NaN, onSome: Duration.toMillis }),
    range,
    "a duration in milliseconds",
  )
