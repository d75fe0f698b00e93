/** Values in statements: parameters with their types, and results that look the same through every driver. */

import * as PgTypes from "@effect/sql-pg/PgTypes"
import * as Result from "effect/Result"

/** A UUID that sorts before all others. */
export const nilUuid = "00000000-0000-0000-0000-000000000000"

const nullable =
  <A>(encode: (value: A | null) => PgTypes.Parameter) =>
  (value: A | undefined): PgTypes.Parameter =>
    encode(value ?? null)

const arrayOf =
  <A>(oid: number) =>
  (values: ReadonlyArray<A | undefined>): PgTypes.Parameter =>
    Result.getOrThrow(
      PgTypes.array(
        values.map((value) => value ?? null),
        oid,
      ),
    )

export const textParam = nullable<string>(PgTypes.text)
export const textsParam = arrayOf<string>(PgTypes.OID.text)
export const uuidParam = nullable<string>(PgTypes.uuid)
export const uuidsParam = arrayOf<string>(PgTypes.OID.uuid)
export const flagParam = nullable<boolean>(PgTypes.bool)
export const flagsParam = arrayOf<boolean>(PgTypes.OID.bool)
export const integerParam = nullable<number>(PgTypes.int4)
export const integersParam = arrayOf<number>(PgTypes.OID.int4)
export const smallintsParam = arrayOf<number>(PgTypes.OID.int2)

/** A 64-bit integer. */
export const bigintParam = (value: number | bigint): PgTypes.Parameter =>
  PgTypes.int8(BigInt(value))
export const bigintsParam = arrayOf<bigint>(PgTypes.OID.int8)
const float = (value: number): PgTypes.Parameter => PgTypes.float8(value)
export const floatsParam = arrayOf<number>(PgTypes.OID.float8)

/** Writes an instant. PostgreSQL has no negative years, and calls the year 0 1 BC. */
const instantText = (millis: number): string => {
  const date = new Date(millis)
  const text = date.toISOString()
  const year = date.getUTCFullYear()
  const rest = text.slice(text.indexOf("-", 1))
  if (year > 0) return `${String(year).padStart(4, "0")}${rest}`
  return `${String(1 - year).padStart(4, "0")}${rest} BC`
}

/**
 * An instant, in milliseconds since the epoch. It is sent as text, whose type the statement names: the driver
 * would compute microseconds in a double, which is not exact after the year 4253.
 */
export const instantParam = (millis: number | undefined): string | null =>
  millis === undefined ? null : instantText(millis)
export const instantsParam = (values: ReadonlyArray<number | undefined>): string =>
  `{${values.map((millis) => (millis === undefined ? "NULL" : `"${instantText(millis)}"`)).join()}}`

/** A duration in milliseconds, sent in days. */
export const daysParam = (millis: number): PgTypes.Parameter => float(millis / 86_400_000)

/** A 64-bit integer as drivers return it, each in its own type. Convert it with `Number`. */
export type Integer = bigint | number | string

/**
 * An expression for an instant in milliseconds since the epoch, from a `timestamptz`, or for a difference
 * between two in whole milliseconds.
 *
 * Statements return such numbers, and JSON as text, because they may run on a host's connection, whose driver
 * converts dates, arrays and JSON as the host wishes.
 */
export const millisOf = (instant: string): string =>
  `floor(extract(epoch FROM ${instant}) * 1000)::bigint`

/** An expression for a duration in milliseconds, from an `interval` without months. */
export const wholeMillisOf = (interval: string): string =>
  `(extract(epoch FROM ${interval}) * 1000)::bigint`

/** An expression for a `jsonb` value or an array as JSON text. */
export const jsonOf = (value: string): string => `to_json(${value})::text`

/** Converts an instant from `millisOf`, which may be missing. */
export const toMillis = (millis: Integer | null): number | undefined =>
  millis === null ? undefined : Number(millis)
