/** Prints schemas: their fields as tables, and their types in a few words. */

import type { Schema } from "../../core/src/http/docs/OpenApi.ts"
import { paragraphs, prose, table } from "./markdown.ts"

/** The schemas of a document, by name. */
export type Schemas = Readonly<Record<string, Schema>>

/** Whether a value is a schema. */
export const isSchema = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

/** The name to which something refers. */
export const referenceOf = ({ $ref }: { readonly $ref?: unknown }): string | undefined =>
  typeof $ref === "string" ? $ref.slice($ref.lastIndexOf("/") + 1) : undefined

/** Whether a schema has fields, and so a place on the page. */
const hasFields = (schema: Schema | undefined): boolean => isSchema(schema?.["properties"])

/** Prints what schemas are, within a document. */
export const printer = (schemas: Schemas) => {
  const typeOf = (schema: Schema): string => {
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

  const descriptionOf = (schema: Schema): string => {
    const { description } = schema
    if (typeof description === "string") return prose(description)
    const name = referenceOf(schema)
    return name === undefined ? "" : descriptionOf(schemas[name] ?? {})
  }

  const resolve = (schema: Schema): Schema => {
    const name = referenceOf(schema)
    return name === undefined ? schema : (schemas[name] ?? {})
  }

  const rowsOf = (schema: Schema): ReadonlyArray<ReadonlyArray<string>> => {
    const { allOf, properties, required } = resolve(schema)
    const needed = listOf(required)
    const rows = Object.entries(isSchema(properties) ? properties : {}).map(([field, of]) => [
      `\`${field}\`${needed.includes(field) ? "" : " (optional)"}`,
      isSchema(of) ? typeOf(of) : "",
      isSchema(of) ? descriptionOf(of) : "",
    ])
    return [...listOf(allOf).filter(isSchema).flatMap(rowsOf), ...rows]
  }

  const fieldsOf = (schema: Schema): string => table(["field", "type", "meaning"], rowsOf(schema))

  return {
    typeOf,
    fieldsOf,
    /** Prints the objects to which types link. @param isLeftOut - tells of names that are elsewhere */
    objects: (isLeftOut: (name: string) => boolean = () => false): string =>
      Object.entries(schemas)
        .filter(([name, schema]) => hasFields(schema) && !isLeftOut(name))
        .map(([name, schema]) => paragraphs(`### ${name} {#${name}}`, fieldsOf(schema)))
        .join("\n\n"),
  }
}
