/** Flags for files with other column names and date formats. */

import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type Failure, usageFailure } from "../support/failure.ts"
import type { Reading } from "./member-lines.ts"
import type { Format } from "./members-export.ts"
import {
  type ColumnNames,
  type DateOrder,
  type Field,
  fields,
  isField,
  parseDateOrder,
} from "./spreadsheet.ts"

const assignment = /^([^=]+)=([^]+)$/

const map = Flag.String("map").pipe(
  Flag.filterMap(
    (text): Option.Option<readonly [Field, string]> => {
      const [, field = "", column = ""] = assignment.exec(text) ?? []
      return isField(field) && column.trim() !== ""
        ? Option.some([field, column.trim()])
        : Option.none()
    },
    () => `${fields.join(", ")}, and the name of a column, such as user_id="User number"`,
  ),
  Flag.withMetavar("FIELD=COLUMN"),
  Flag.withDescription(
    `Takes a field from a column of another name, such as user_id="User number"; may be repeated`,
  ),
  Flag.atLeast(0),
)

const dates = Flag.String("dates").pipe(
  Flag.filterMap(
    Option.liftNullishOr(parseDateOrder),
    () => "the order of day, month and year, such as DD.MM.YYYY, MM/DD/YYYY or DD/MM/YYYY",
  ),
  Flag.withMetavar("ORDER"),
  Flag.withDescription("How the file writes dates, such as DD.MM.YYYY, MM/DD/YYYY or DD/MM/YYYY"),
  Flag.optional,
)

/** The flags. */
export const readingFlags = { map, dates }

/** The flags' values. */
interface ReadingFlags {
  readonly map: ReadonlyArray<readonly [Field, string]>
  readonly dates: Option.Option<DateOrder>
}

/** Returns how to read a file. Fails if a field is mapped twice. */
export const readReading = (
  given: ReadingFlags,
  format?: Format,
): Effect.Effect<Reading, Failure> => {
  const columns: ColumnNames = new Map(given.map)
  return columns.size === given.map.length
    ? Effect.succeed({ columns, dates: Option.getOrUndefined(given.dates), format })
    : Effect.fail(usageFailure("--map names a field twice: give each field one column."))
}
