/**
 * Values that statements return in the same way through every driver. Tenure's statements may run on a
 * connection of the host, whose driver makes dates, arrays and JSON into what the host wishes.
 */

/** An integer of up to 64 bits, as one driver or another returns it. Convert it with `Number`. */
export type Integer = bigint | number | string

/** An expression for an instant in milliseconds since the epoch, from a `timestamptz`. */
export const millisOf = (instant: string): string =>
  `floor(extract(epoch FROM ${instant}) * 1000)::bigint`

/** An expression for a `jsonb` value or an array as JSON text. */
export const jsonOf = (value: string): string => `to_json(${value})::text`

/** Converts such an instant, which may be missing. */
export const toMillis = (millis: Integer | null): number | undefined =>
  millis === null ? undefined : Number(millis)
