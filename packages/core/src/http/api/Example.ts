/** Makes an example of a JSON Schema from the examples of its parts. */

import * as Predicate from "effect/Predicate"
import type { Schema } from "../docs/OpenApi.ts"

const isSchema = (value: unknown): value is Schema => Predicate.isObject(value)

const schemasIn = (value: unknown): ReadonlyArray<Schema> =>
  Array.isArray(value) ? value.filter(isSchema) : []

const first = (value: unknown): unknown => (Array.isArray(value) ? value[0] : undefined)

/** Follows a reference to its schema. Returns any other schema as it is. */
export const resolve = (schema: Schema, schemas: Readonly<Record<string, Schema>>): Schema => {
  const { $ref } = schema
  return typeof $ref === "string" ? (schemas[$ref.slice($ref.lastIndexOf("/") + 1)] ?? {}) : schema
}

/**
 * Makes the function that makes an example of a schema.
 *
 * @param schemas - the schemas that others refer to
 * @param withOptional - whether objects have their optional properties
 */
export const make = (
  schemas: Readonly<Record<string, Schema>>,
  withOptional: boolean,
): ((schema: Schema) => unknown) => {
  const object = ({ properties, required }: Schema): unknown => {
    const needed: ReadonlyArray<unknown> = Array.isArray(required) ? required : []
    return Object.fromEntries(
      Object.entries(isSchema(properties) ? properties : {}).flatMap(([name, property]) =>
        isSchema(property) && (withOptional || needed.includes(name))
          ? [[name, exampleOf(property)]]
          : [],
      ),
    )
  }

  const array = ({ items, prefixItems }: Schema): unknown =>
    prefixItems === undefined
      ? [exampleOf(isSchema(items) ? items : {})]
      : schemasIn(prefixItems).map(exampleOf)

  const exampleOf = (given: Schema): unknown => {
    if (Array.isArray(given["examples"])) return first(given["examples"])
    const schema = resolve(given, schemas)
    if (Array.isArray(schema["examples"])) return first(schema["examples"])
    if (Array.isArray(schema["enum"])) return first(schema["enum"])
    const [alternative] = schemasIn(schema["anyOf"])
    if (alternative !== undefined) return exampleOf(alternative)
    switch (schema["type"]) {
      case "object":
        return object(schema)
      case "array":
        return array(schema)
      case "boolean":
        return true
      case "integer":
      case "number":
        return 1
      default:
        return null
    }
  }
  return exampleOf
}
