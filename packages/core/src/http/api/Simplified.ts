/** Simplifies the schemas that `HttpApi` makes, and refers to them. */

import type * as OpenApi from "effect/http-api/OpenApi"
import * as Predicate from "effect/Predicate"
import type { Document, Reference, Schema } from "../docs/OpenApi.ts"

/** The schemas of a document, by their names. */
export type Schemas = Document["components"]["schemas"]

/** Returns the reference to a part of the document. */
export const refTo = (kind: keyof Document["components"], name: string): Reference => ({
  $ref: `#/components/${kind}/${name}`,
})

/** `HttpApi` numbers the copies of a schema: `Role_2` is `Role`. */
const nameOfCopy = (name: string): string => name.replace(/_\d+$/, "")

/** Whether a value is an object, which may be a schema. */
export const isRecord = (value: unknown): value is Schema =>
  Predicate.isObject(value) && !Array.isArray(value)

/**
 * Simplifies what `HttpApi` made of a schema. Objects may have further properties, so that a later
 * version of the API can add some; and a reference may have a description beside it.
 */
const simplify = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(simplify)
  if (!isRecord(value)) return value
  if (typeof value["$ref"] === "string") return { ...value, $ref: nameOfCopy(value["$ref"]) }
  const { additionalProperties, allOf, ...rest } = value
  const parts: ReadonlyArray<unknown> = Array.isArray(allOf) ? allOf : []
  const merged = Object.assign({}, ...parts.filter(isRecord), rest)
  const open = additionalProperties === false ? {} : { additionalProperties }
  return Object.fromEntries(
    Object.entries({ ...merged, ...(additionalProperties !== undefined && open) }).map(
      ([name, part]) => [name, simplify(part)],
    ),
  )
}

/** Simplifies a schema that `HttpApi` has made. */
export const schemaOf = (value: unknown): Schema => {
  const schema = simplify(value)
  return isRecord(schema) ? schema : {}
}

/** Simplifies schemas, and leaves out copies, which must be equal to what they are copies of. */
export const withoutCopies = (given: OpenApi.OpenAPIComponents["schemas"]): Schemas => {
  const all = Object.entries(given).map(
    ([name, schema]) => [nameOfCopy(name), schemaOf(schema)] as const,
  )
  const schemas = Object.fromEntries(all)
  for (const [name, schema] of all) {
    if (JSON.stringify(schema) !== JSON.stringify(schemas[name])) {
      throw new Error(`Schemas of the name ${name} differ.`)
    }
  }
  return schemas
}
