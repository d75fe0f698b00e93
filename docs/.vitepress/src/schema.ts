/** Prints schemas: their fields as tables, and their types in a few words. */

import type { JsonSchema } from "../../../packages/core/src/openapi/types.ts"
import { paragraphs, prose, table } from "./markdown.ts"

/** A document's schemas by name. */
export type Schemas = Readonly<Record<string, JsonSchema>>

/** Whether a value is a schema. */
export const isSchema = (value: unknown): value is JsonSchema =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

/** Returns the schema name in a reference. */
export const referenceOf = ({ $ref }: { readonly $ref?: unknown }): string | undefined =>
  typeof $ref === "string" ? $ref.slice($ref.lastIndexOf("/") + 1) : undefined

/** Whether a schema has fields, and so a place on the page. */
const hasFields = (schema: JsonSchema | undefined): boolean => isSchema(schema?.["properties"])

/** Makes functions that print the schemas in a document. */
export const printer = (schemas: Schemas) => {
  const typeOf = (schema: JsonSchema): string => {
    const name = referenceOf(schema)
    if (name !== undefined) {
      const target = schemas[name] ?? {}
      return hasFields(target) ? `[${name}](#${name})` : typeOf(target)
    }
    const alternatives = [...listOf(schema["anyOf"]), ...listOf(schema["allOf"])].filter(isSchema)
    if (alternatives.length > 0) return alternatives.map(typeOf).join(" or ")
    const values = listOf(schema["enum"])
    if (values.length > 0) return values.map((value) => `\`${JSON.stringify(value)}\``).join(" or ")
    const { format, items, type = "any" } = schema
    if (type === "array") return `array of ${isSchema(items) ? typeOf(items) : "anything"}`
    return String(format ?? type)
  }

  const descriptionOf = (schema: JsonSchema): string => {
    const { description } = schema
    if (typeof description === "string") return prose(description)
    const name = referenceOf(schema)
    return name === undefined ? "" : descriptionOf(schemas[name] ?? {})
  }

  const resolve = (schema: JsonSchema): JsonSchema => {
    const name = referenceOf(schema)
    return name === undefined ? schema : (schemas[name] ?? {})
  }

  const rowsOf = (schema: JsonSchema): ReadonlyArray<ReadonlyArray<string>> => {
    const { allOf, properties, required } = resolve(schema)
    const needed = listOf(required)
    const rows = Object.entries(isSchema(properties) ? properties : {}).map(([field, of]) => [
      `\`${field}\`${needed.includes(field) ? "" : " (optional)"}`,
      isSchema(of) ? typeOf(of) : "",
      isSchema(of) ? descriptionOf(of) : "",
    ])
    return [...listOf(allOf).filter(isSchema).flatMap(rowsOf), ...rows]
  }

  const fieldsOf = (schema: JsonSchema): string =>
    table(["field", "type", "meaning"], rowsOf(schema))

  return {
    typeOf,
    fieldsOf,
    /** Prints the objects linked from types. @param isLeftOut - returns `true` for names printed elsewhere */
    objects: (isLeftOut: (name: string) => boolean = () => false): string =>
      Object.entries(schemas)
        .filter(([name, schema]) => hasFields(schema) && !isLeftOut(name))
        .map(([name, schema]) => paragraphs(`### ${name} {#${name}}`, fieldsOf(schema)))
        .join("\n\n"),
  }
}
