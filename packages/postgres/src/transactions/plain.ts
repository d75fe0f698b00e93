/**
 * Statements for the connections of hosts, whose drivers know nothing of the types of parameters: the
 * statement names the types, and the values are those that every driver passes on unchanged.
 */

import * as PgTypes from "@effect/sql-pg/PgTypes"
import type { Param } from "@tenure/core/Transactions"

const { OID } = PgTypes

const typeNames: ReadonlyMap<number, string> = new Map([
  [OID.text, "text"],
  [OID.textArray, "text[]"],
  [OID.uuid, "uuid"],
  [OID.uuidArray, "uuid[]"],
  [OID.bool, "boolean"],
  [OID.int4, "integer"],
  [OID.timestamptz, "timestamptz"],
  [OID.timestamptzArray, "timestamptz[]"],
])

/** Writes an instant, which may be in the year 0: PostgreSQL calls that 1 BC. */
const instantText = (millis: number): string => {
  const text = new Date(millis).toISOString()
  return text.startsWith("0000") ? `0001${text.slice(4)} BC` : text
}

const isInstant = (oid: number, value: unknown): value is number =>
  typeof value === "number" && (oid === OID.timestamptz || oid === OID.timestamptzArray)

const scalar = (oid: number, value: unknown): Param => {
  if (value === null || value === undefined) return null
  if (isInstant(oid, value)) return instantText(value)
  if (typeof value === "number" || typeof value === "boolean") return value
  return value instanceof Date ? value.toISOString() : String(value)
}

const elementOf = (element: Param): string =>
  element === null ? "NULL" : `"${String(element).replaceAll(/["\\]/g, "\\$&")}"`

const plainValue = (param: unknown): Param => {
  const { oid, value } = PgTypes.isParameter(param) ? param : { oid: 0, value: param }
  return Array.isArray(value)
    ? `{${value.map((element) => elementOf(scalar(oid, element))).join()}}`
    : scalar(oid, value)
}

/** Writes the types of parameters into a statement, and returns the plain values. */
export const plain = (
  sql: string,
  params: ReadonlyArray<unknown>,
): readonly [statement: string, params: Array<Param>] => {
  const typed = sql.replaceAll(/\$(\d+)/g, (placeholder, position) => {
    const param = params[Number(position) - 1]
    const type = PgTypes.isParameter(param) ? typeNames.get(param.oid) : undefined
    return type === undefined ? placeholder : `${placeholder}::${type}`
  })
  return [typed, params.map(plainValue)]
}

const snakeCase = (name: string): string =>
  name
    .replaceAll(/([a-z])([A-Z])/g, "$1_$2")
    .replaceAll("-", "_")
    .toLowerCase()

/** Gives columns of Tenure's statements their names back, which some hosts have converted to camel case. */
export function named<Row extends object>(rows: ReadonlyArray<Row>): ReadonlyArray<Row>
export function named(rows: ReadonlyArray<object>): ReadonlyArray<object> {
  return rows.map((row) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [snakeCase(name), value])),
  )
}
