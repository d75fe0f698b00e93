/** Parameters with the types that statements declare, so that each is prepared once. */

import * as PgTypes from "@effect/sql-pg/PgTypes"
import * as Result from "effect/Result"

const nullable =
  <A>(of: (value: A | null) => PgTypes.Parameter) =>
  (value: A | undefined): PgTypes.Parameter =>
    of(value ?? null)

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
export const integer = nullable<number>(PgTypes.int4)

/** A whole number beyond 32 bits. */
export const bigint = (value: number): PgTypes.Parameter => PgTypes.int8(BigInt(value))

/** An instant in milliseconds since the epoch. */
export const instant = nullable<number>(PgTypes.timestamptz)
export const instants = arrayOf<number>(PgTypes.OID.timestamptz)
export const bigints = arrayOf<bigint>(PgTypes.OID.int8)

/** A duration in milliseconds, as days. */
export const days = (millis: number): PgTypes.Parameter => PgTypes.float8(millis / 86_400_000)
