/** Statement parameters, sent with the types that the statements declare. */

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

export const text = nullable<string>(PgTypes.text)
export const texts = arrayOf<string>(PgTypes.OID.text)
export const uuid = nullable<string>(PgTypes.uuid)
export const uuids = arrayOf<string>(PgTypes.OID.uuid)
export const flag = nullable<boolean>(PgTypes.bool)
export const flags = arrayOf<boolean>(PgTypes.OID.bool)
export const integer = nullable<number>(PgTypes.int4)
export const integers = arrayOf<number>(PgTypes.OID.int4)

/** An integer of up to 64 bits. */
export const bigint = (value: number | bigint): PgTypes.Parameter => PgTypes.int8(BigInt(value))
export const bigints = arrayOf<bigint>(PgTypes.OID.int8)
const float = (value: number): PgTypes.Parameter => PgTypes.float8(value)
export const floats = arrayOf<number>(PgTypes.OID.float8)

/** An instant, in milliseconds since the epoch. */
export const instant = nullable<number>(PgTypes.timestamptz)
export const instants = arrayOf<number>(PgTypes.OID.timestamptz)

/** A duration in milliseconds, sent as a number of days. */
export const days = (millis: number): PgTypes.Parameter => float(millis / 86_400_000)
