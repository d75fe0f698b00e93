/** Prints an OpenAPI document's operations as TypeScript. */

import { format } from "oxfmt"
import type { Calls } from "../src/calls.ts"

/** The JSON Schema subset in the document. */
interface Schema {
  readonly $ref?: string
  readonly type?: string | ReadonlyArray<string>
  readonly enum?: ReadonlyArray<unknown>
  readonly const?: unknown
  readonly anyOf?: ReadonlyArray<Schema>
  readonly oneOf?: ReadonlyArray<Schema>
  readonly allOf?: ReadonlyArray<Schema>
  readonly items?: Schema | false
  readonly prefixItems?: ReadonlyArray<Schema>
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: ReadonlyArray<string>
  readonly additionalProperties?: Schema | boolean
  readonly description?: string
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly description?: string
  readonly schema: Schema
}

type Content = Readonly<Record<string, { readonly schema: Schema }>>

interface Operation {
  readonly operationId: string
  readonly summary?: string
  readonly description?: string
  readonly parameters?: ReadonlyArray<Parameter>
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>
}

/** The printed parts of a document. */
export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly webhooks: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

/** A printed object field. */
interface Field {
  readonly name: string
  readonly type: string
  readonly isRequired: boolean
  readonly description: string | undefined
}

const unique = (texts: ReadonlyArray<string>): ReadonlyArray<string> => [...new Set(texts)]

/** Groups items by a key, in the keys' first order. */
const groupBy = <Item>(items: ReadonlyArray<Item>, keyOf: (item: Item) => string) =>
  items.reduce((groups, item) => {
    const key = keyOf(item)
    return groups.set(key, [...(groups.get(key) ?? []), item])
  }, new Map<string, ReadonlyArray<Item>>())

const union = (types: ReadonlyArray<string>): string => unique(types).join(" | ")

const comment = (text: string | undefined): string =>
  text === undefined ? "" : `/** ${text.replaceAll("\n", " ")} */\n`

const printField = ({ description, isRequired, name, type }: Field): string =>
  `${comment(description)}readonly ${name}${isRequired ? "" : "?"}: ${type}`

const printObject = (fields: ReadonlyArray<Field>): string =>
  fields.length === 0 ? "{}" : `{\n${fields.map(printField).join("\n")}\n}`

const refOf = (ref: string): string => ref.replace("#/components/schemas/", "")

/** Prints a schema; `absent` extends an optional field's type. */
const print = (schema: Schema, absent = ""): string => {
  const one = (part: Schema) => print(part, absent)
  if (schema.$ref !== undefined) return refOf(schema.$ref)
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum !== undefined) return union(schema.enum.map((value) => JSON.stringify(value)))
  const either = schema.anyOf ?? schema.oneOf
  if (either !== undefined) return union(either.map(one))
  if (Array.isArray(schema.type)) return union(schema.type.map((type) => one({ ...schema, type })))
  if (schema.prefixItems !== undefined)
    return `readonly [${schema.prefixItems.map(one).join(", ")}]`
  switch (schema.type) {
    case "string":
    case "boolean":
    case "null":
      return schema.type
    case "number":
    case "integer":
      return "number"
    case "array":
      return `ReadonlyArray<${one(schema.items || {})}>`
    case "object":
      return typeof schema.additionalProperties === "object"
        ? `Readonly<Record<string, ${one(schema.additionalProperties)}>>`
        : printObject(fieldsOf(schema, absent))
    // Any JSON value.
    case undefined:
      return "unknown"
    default:
      throw new Error(`There is no type for ${JSON.stringify(schema)}`)
  }
}

const fieldsOf = ({ properties = {}, required = [] }: Schema, absent: string) =>
  Object.entries(properties).map(([name, schema]): Field => {
    const isRequired = required.includes(name)
    return {
      name,
      type: isRequired ? print(schema, absent) : `${print(schema, absent)}${absent}`,
      isRequired,
      description: schema.description,
    }
  })

/** Replaces references to string schemas, such as ids and times, by these schemas. */
const inline = (document: Document): Document => {
  const { schemas } = document.components
  const named = Object.entries(schemas).filter(([, { type }]) => type !== "string")
  const components = { schemas: Object.fromEntries(named) }
  return JSON.parse(JSON.stringify({ ...document, components }), (_, value: unknown) => {
    if (typeof value !== "object" || value === null || !("$ref" in value)) return value
    const schema = schemas[refOf(String(value.$ref))]
    return schema?.type === "string" ? schema : value
  })
}

const resolve = ({ components }: Document, schema: Schema): Schema =>
  schema.$ref === undefined ? schema : (components.schemas[refOf(schema.$ref)] ?? {})

/** Merges schemas; a field missing in some becomes optional. */
const merge = (schemas: ReadonlyArray<Schema>): Schema => ({
  type: "object",
  properties: Object.assign({}, ...schemas.map(({ properties }) => properties)),
  required: (schemas[0]?.required ?? []).filter((name) =>
    schemas.every(({ required = [] }) => required.includes(name)),
  ),
})

/** Lets callers pass on their own optional values. */
const orUndefined = " | undefined"

/** Returns the parameters except headers, which the client sends itself. */
const parameterFields = ({ parameters = [] }: Operation): ReadonlyArray<Field> =>
  parameters
    .filter((parameter) => parameter.in !== "header")
    .map(({ description, name, required = false, schema }) => ({
      name,
      type: required ? print(schema) : `${print(schema)}${orUndefined}`,
      isRequired: required,
      description: description ?? schema.description,
    }))

/** Returns the schema for an NDJSON body. It is a string, and only the import takes one. */
const linesOf = ({ requestBody }: Operation): Schema | undefined =>
  requestBody?.content["application/x-ndjson"]?.schema

/** Returns the body's fields. A field missing in one alternative is optional. */
const bodyFields = (document: Document, operation: Operation): ReadonlyArray<Field> => {
  const lines = linesOf(operation)
  if (lines !== undefined) {
    const type = "Iterable<ImportLine>"
    return [{ name: "lines", type, isRequired: true, description: lines.description }]
  }
  const body = resolve(document, operation.requestBody?.content["application/json"]?.schema ?? {})
  return fieldsOf(merge(body.anyOf ?? [body]), orUndefined)
}

/** Combines the path, query and body fields. */
const inputOf = (document: Document, operation: Operation): ReadonlyArray<Field> => {
  const fields = [...parameterFields(operation), ...bodyFields(document, operation)]
  const names = fields.map(({ name }) => name)
  if (unique(names).length === names.length) return fields
  throw new Error(`${operation.operationId} has two fields with one name`)
}

/** Returns the success body, if it is an envelope. */
const successOf = (document: Document, { responses }: Operation): Schema | undefined => {
  const schema = responses["200"]?.content?.["application/json"]?.schema
  const envelope = schema && resolve(document, schema)
  return envelope?.properties?.["data"] && envelope
}

/** Returns an operation's result type. */
const resultOf = ({ properties = {} }: Schema): string => {
  const { data = {}, next, total } = properties
  // A feed never ends, so it has no last page with a null `next`.
  if (next?.type === "string") return `Promise<Continued<${print(data.items || {})}>>`
  if (next !== undefined) return `PageList<${print(data.items || {})}>`
  return `Promise<${total === undefined ? "Success" : "Counted"}<${print(data)}>>`
}

/** Names the function that performs an operation. */
const callOf = (operation: Operation, result: string): keyof Calls => {
  if (linesOf(operation) !== undefined) return "callWithLines"
  return result.startsWith("PageList") ? "list" : "call"
}

/** A client method: its type and its code. */
interface Method {
  readonly resource: string
  readonly type: string
  readonly code: string
  /** Its input's field names. */
  readonly fields: string
}

const methodOf = (
  document: Document,
  route: string,
  operation: Operation,
  success: Schema,
): Method => {
  const [resource = "", name = ""] = operation.operationId.split(".")
  const input = inputOf(document, operation)
  const isOptional = input.every(({ isRequired }) => !isRequired)
  const text = [operation.description ?? operation.summary ?? [], `\`${route}\``].flat().join(" ")
  const result = resultOf(success)
  const [method, path] = route.split(" ")
  return {
    resource,
    type: `${comment(text)}readonly ${name}: (
      input${isOptional ? "?" : ""}: ${printObject(input)},
      options?: CallOptions,
    ) => ${result}`,
    code: `${name}: (input${isOptional ? " = {}" : ""}, options) =>
      ${callOf(operation, result)}("${method}", "${path}", input, options),`,
    fields: `"${route}": "${[name, ...input.map((field) => field.name)].join(" ")}",`,
  }
}

const methodsOf = (document: Document): ReadonlyArray<Method> =>
  Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, operation]) => {
      const success = successOf(document, operation)
      const route = `${method.toUpperCase()} ${path}`
      return success === undefined ? [] : methodOf(document, route, operation, success)
    }),
  )

/** Tells whether a schema is a failure: an envelope with errors. */
const isFailure = ({ properties = {} }: Schema): boolean =>
  "request_id" in properties && ("error" in properties || "errors" in properties)

/** Returns the schemas for `error` and `errors` in failures. */
const problemsOf = (document: Document): ReadonlyArray<Schema> =>
  Object.values(document.components.schemas)
    .filter(isFailure)
    .flatMap(({ properties = {} }) => {
      const { error, errors } = properties
      return [error, ...(errors?.prefixItems ?? [errors?.items || undefined])].filter(
        (schema) => schema !== undefined,
      )
    })

const codeOf = ({ properties = {} }: Schema): string => {
  const { code, error_code = code } = properties
  return String(error_code?.enum?.[0])
}

const printProblems = (document: Document): string => {
  const fields = [...groupBy(problemsOf(document), codeOf)].map(([name, schemas]): Field => ({
    name,
    type: print(merge(schemas)),
    isRequired: true,
    description: undefined,
  }))
  return `export interface Problems ${printObject(fields.toSorted((a, b) => (a.name < b.name ? -1 : 1)))}`
}

/** Prints the events with Tenure's own types. */
const printEvents = (document: Document): string => {
  const fields = Object.entries(document.webhooks).flatMap(([type, { post }]): Array<Field> => {
    const schema = post?.requestBody?.content["application/json"]?.schema ?? {}
    return resolve(document, schema).properties?.["type"]?.enum?.includes(type) === true
      ? [{ name: `"${type}"`, type: print(schema), isRequired: true, description: post?.summary }]
      : []
  })
  return `export interface Events ${printObject(fields)}`
}

/** Prints the named schemas referenced by the texts or by other schemas. */
const printSchemas = ({ components }: Document, texts: ReadonlyArray<string>): string => {
  const printed = Object.entries(components.schemas)
    .filter(([, schema]) => !isFailure(schema))
    .map(([name, schema]) => {
      const head = schema.type === "object" ? `interface ${name}` : `type ${name} =`
      return { name, text: `${comment(schema.description)}export ${head} ${print(schema)}` }
    })
  const isUsed = (name: string) =>
    [...texts, ...printed.flatMap((one) => (one.name === name ? [] : one.text))].some((text) =>
      new RegExp(`\\b${name}\\b`).test(text),
    )
  return printed
    .filter(({ name }) => isUsed(name))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ text }) => text)
    .join("\n\n")
}

/** Returns the call and result types used by the methods. */
const usedIn = (texts: ReadonlyArray<string>, pattern: RegExp): string =>
  unique(texts.flatMap((text) => text.match(pattern) ?? []))
    .toSorted()
    .join(", ")

/** Prints the operations module. */
export const printOperations = async (original: Document): Promise<string> => {
  const document = inline(original)
  const methods = methodsOf(document)
  const resources = [...groupBy(methods, ({ resource }) => resource)]
  const types = methods.map(({ type }) => type)
  const events = printEvents(document)
  const calls = usedIn(
    methods.map(({ code }) => code),
    /\b(?:call|callWithLines|list)(?=\()/g,
  )
  const { code, errors } = await format(
    "operations.ts",
    `/**
 * The operations of the API. Generated from its OpenAPI document:
 * \`npm run generate\`.
 */

import type { CallOptions, Calls, ImportLine${calls.includes("list") ? ", PageList" : ""} } from "./calls.ts"
import type { ${usedIn(types, /\b(?:Continued|Counted|Success)(?=<)/g)} } from "./response.ts"

${printSchemas(document, [...types, events])}

/** The errors of the API by code, as they are in the body of a response. */
${printProblems(document)}

/** The events that Tenure itself publishes, by type, as they are in the body of a notification. */
${events}

/** The client: an object for each resource, with a method for each operation. */
export interface Operations {
${resources.map(([name, all]) => `readonly ${name}: {\n${all.map(({ type }) => type).join("\n\n")}\n}`).join("\n\n")}
}

/** The name of each operation and those of the fields of its input, by resource and route. */
export const fields: Readonly<Record<string, Readonly<Record<string, string>>>> = {
${resources.map(([name, all]) => `${name}: {\n${all.map((one) => one.fields).join("\n")}\n},`).join("\n")}
}

/** Makes the operations, by resource. */
export const operations = ({ ${calls} }: Calls): Operations => ({
${resources.map(([name, all]) => `${name}: {\n${all.map((one) => one.code).join("\n")}\n},`).join("\n")}
})
`,
    { semi: false, printWidth: 100 },
  )
  if (errors.length > 0) throw new Error(JSON.stringify(errors))
  return code
}
