/** Prints Effect `HttpApi` groups for the operations declared in `packages/core/src/api`. */

import type { Expression, ObjectProperty, TSType } from "oxc-parser"
import type { Declaration } from "../../packages/core/src/api/declaration.ts"
import { type RequestInput, wireNameOf } from "../../packages/core/src/base/operation-input.ts"
import type { InputFields } from "../../packages/core/src/base/setting.ts"
import { type NamedSchemas, annotated, makePrinter, ofJson, ofQuery } from "./schemas.ts"
import {
  type Found,
  docAt,
  findProperty,
  findValue,
  propertiesOf,
  resolveValue,
  sourceOf,
  valueOf,
} from "./source.ts"

/** A resource's operations, and the module that declares them. */
export interface Resource {
  readonly name: string
  readonly path: string
  readonly constant: string
  readonly operations: Readonly<Record<string, Declaration>>
}

const quoted = (value: unknown): string => JSON.stringify(value)

const capitalized = (name: string): string => `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`

type AnyInput = RequestInput<unknown, unknown>

/** Returns an argument from the call that declares an input. */
const argumentOf = (found: Found<Expression>, index: number): Found<Expression> => {
  const { node, source } = found
  const argument = node.type === "CallExpression" ? node.arguments[index] : undefined
  if (argument === undefined || argument.type === "SpreadElement") {
    throw new Error(`${source.path}: an input is not declared by a call`)
  }
  return resolveValue(source, argument)
}

/** Prints fields under their names in requests. */
const fieldsOf = (
  fields: InputFields,
  declared: Found<Expression>,
  print: (json: unknown) => string,
  areOptional = false,
): ReadonlyArray<string> =>
  Object.entries(fields).flatMap(([name, setting]) => {
    // Requests must omit this field.
    if (setting.json === undefined) return []
    const property = findProperty(declared, name)
    if (property === undefined) throw new Error(`${declared.source.path} has no field ${name}`)
    const schema = print(setting.json)
    const isReference = /^[A-Za-z]\w*$/.test(schema)
    const whole = annotated(schema, docAt(property.source, property.start), isReference)
    const isOptional = areOptional || setting.isOptional === true
    return [`${wireNameOf(name, setting)}: ${isOptional ? `Schema.optionalKey(${whole})` : whole}`]
  })

const structOf = (input: AnyInput, declared: Found<Expression>): string => {
  const struct = `Schema.Struct({ ${fieldsOf(input.fields, argumentOf(declared, 1), ofJson).join(", ")} })`
  return input.needsField ? `${struct}.check(Schema.isMinProperties(1))` : struct
}

/** Names a body after its input's constant, and adds the example from the constant's doc comment. */
const namedBody = ({ node, source }: Found<Expression>): string => {
  if (node.type !== "Identifier") return ""
  const found = findValue(source, node.name)
  const example = docAt(found.source, found.start).tags.get("example")
  const examples = example === undefined ? "" : `, examples: [${example}]`
  return `.annotate({ identifier: ${quoted(capitalized(node.name))}${examples} })`
}

/** Returns the name of the function that makes an input. */
const makerOf = ({ node }: Found<Expression>): string | undefined =>
  node.type === "CallExpression" && node.callee.type === "Identifier" ? node.callee.name : undefined

/** Returns the argument index where a call's alternative inputs begin. */
const firstAlternative = (declared: Found<Expression>): number =>
  makerOf(declared) === "chosenBy" ? 1 : 0

/** Prints a body with the fields from one input among alternatives. */
const bodyOf = (alternatives: ReadonlyArray<AnyInput>, declared: Found<Expression>): string => {
  const at = firstAlternative(declared)
  const all = alternatives.map((input, index) => ({ input, of: argumentOf(declared, at + index) }))
  if (makerOf(declared) === "either")
    return `Schema.Union([${all.map(({ input, of }) => structOf(input, of)).join(", ")}])`
  // One object, because generated clients have all fields in one type.
  const fields = new Map(
    all.flatMap(({ input, of }) =>
      fieldsOf(input.fields, argumentOf(of, 1), ofJson, true).map((field) => [
        field.slice(0, field.indexOf(":")),
        field,
      ]),
    ),
  )
  return `Schema.Struct({ ${[...fields.values()].join(", ")} })`
}

/** Prints an NDJSON body with the description from its doc comment. */
const linesOf = ({ node, source }: Found<Expression>, mediaType: string): string => {
  if (node.type !== "Identifier") throw new Error(`${source.path}: lines have no name`)
  const found = findValue(source, node.name)
  const text = annotated("Schema.String", docAt(found.source, found.start), false)
  return `${text}.annotate({ identifier: "Import" }).pipe(HttpApiSchema.asText({ contentType: ${quoted(mediaType)} }))`
}

/** Prints an operation's parameters and body. */
const requestOf = (
  { input, lines, method }: Declaration,
  property: Found<ObjectProperty>,
  linesProperty: Found<ObjectProperty> | undefined,
) => {
  const given = valueOf(property)
  const declared = resolveValue(given.source, given.node)
  const { alternatives } = input
  const at = firstAlternative(declared)
  const [first] = alternatives ?? [input]
  const one = alternatives === undefined ? declared : argumentOf(declared, at)
  const path = fieldsOf(first?.path ?? {}, argumentOf(one, 0), ofJson)
  const parts = path.length === 0 ? [] : [`params: { ${path.join(", ")} }`]
  if (input.wireNames.length === 0) return parts
  if (lines !== undefined || method === "GET" || method === "DELETE") {
    const query = fieldsOf(input.fields, argumentOf(declared, 1), ofQuery)
    return [
      ...parts,
      `query: { ${query.join(", ")} }`,
      ...(lines === undefined || linesProperty === undefined
        ? []
        : [`payload: ${linesOf(valueOf(linesProperty), lines.mediaType)}`]),
    ]
  }
  const body =
    alternatives === undefined ? structOf(input, declared) : bodyOf(alternatives, declared)
  return [...parts, `payload: ${body}${namedBody(given)}`]
}

const envelopes = { continued: "readOn", counted: "counted", paged: "paged", plain: "success" }

/** Error responses with more than a code and a message. */
const ownFailures = new Map([
  ["InvalidEndDate", "invalidEndDate"],
  ["InvalidLines", "linesFailure"],
  ["EndDateConflict", "endDateConflict"],
  ["StateConflict", "stateConflict"],
])

const failureOf = (tag: string): string => ownFailures.get(tag) ?? `failure(${quoted(tag)})`

/** Returns an operation's errors besides the declared ones. */
const commonErrors = ({
  changesNothing,
  isContract,
  method,
  pattern,
  role,
  input,
}: Declaration) => {
  const usual = role === "none" ? "withoutKey" : "commonFailures"
  const isChange = method !== "GET" && changesNothing !== true
  return [
    `...${pattern.includes(":project_id") ? "projectFailures" : usual}`,
    ...(isChange ? ["...idempotencyFailures"] : []),
    ...(isContract === true && input.wireNames.length === 0 ? [] : [failureOf("InvalidInput")]),
  ]
}

/** Makes a function that prints groups and collects named schemas. */
const makeGroupPrinter = (named: NamedSchemas) => {
  const ofType = makePrinter(named)

  const endpointOf = (name: string, declaration: Declaration, property: Found<ObjectProperty>) => {
    const { errors, method, pattern, reply } = declaration
    const body = valueOf(property)
    const input = findProperty(body, "input")
    const replied = findProperty(body, "reply")
    const call = replied?.node.value
    if (input === undefined || replied === undefined || call?.type !== "CallExpression") {
      throw new Error(`${body.source.path}: ${name} has no input or no reply`)
    }
    const data: TSType | undefined = call.typeArguments?.params[0]
    if (data === undefined) throw new Error(`${body.source.path}: the reply of ${name} has no type`)
    const schema = ofType(replied.source, data)
    const failures = [...commonErrors(declaration), ...errors.map(failureOf)]
    const [summary = "", ...description] = docAt(property.source, property.start).paragraphs
    const options = [
      ...requestOf(declaration, input, findProperty(body, "lines")),
      `success: ${envelopes[reply.kind]}(${schema}, ${quoted(reply.message)})`,
      `error: [${failures.join(", ")}]`,
    ]
    return `
    HttpApiEndpoint.make(${quoted(method)})(${quoted(name)}, ${quoted(pattern)}, { ${options.join(", ")} })
      .annotateMerge(OpenApi.annotations(${quoted({ summary, description: description.join(" ") })}))`
  }

  return ({ constant, name, operations, path }: Resource): string => {
    const source = sourceOf(path)
    const declared = findValue(source, constant)
    const object = argumentOf(declared, 0)
    if (object.node.type !== "ObjectExpression")
      throw new Error(`${path}: ${constant} is no object`)
    const properties = new Map(
      propertiesOf(object.node).map((property) => [
        property.key.type === "Identifier" ? property.key.name : "",
        property,
      ]),
    )
    const endpoints = Object.entries(operations).map(([operation, declaration]) => {
      const node = properties.get(operation)
      if (node === undefined) throw new Error(`${path} does not declare ${operation}`)
      return endpointOf(operation, declaration, { source, node, start: node.start })
    })
    const needsKey = Object.values(operations).some(({ role }) => role !== "none")
    const [title = "", ...description] = docAt(source, declared.start).paragraphs
    return `
/** ${title} */
export class ${capitalized(name)}Group extends HttpApiGroup.make(${quoted(name)})
  .add(${endpoints.join(",")})
  ${needsKey ? ".middleware(Authorization)" : ""}
  .annotate(OpenApi.Title, ${quoted(title)})
  .annotate(OpenApi.Description, ${quoted(description.join(" "))}) {}
`
  }
}

/** Names the module may import from `schemas.ts`. */
const shared = [
  "Authorization",
  "commonFailures",
  "counted",
  "endDateConflict",
  "failure",
  "idempotencyFailures",
  "instant",
  "invalidEndDate",
  "linesFailure",
  "paged",
  "projectFailures",
  "readOn",
  "stateConflict",
  "success",
  "uuid",
  "withoutKey",
]

/** Prints the module with one group per resource. */
export const printHttpApi = (resources: ReadonlyArray<Resource>): string => {
  const named: NamedSchemas = new Map()
  const groups = resources.map(makeGroupPrinter(named))
  const schemas = [...named].map(([name, schema]) => `\nexport const ${name} = ${schema}\n`)
  const text = `${schemas.join("")}${groups.join("")}`
  const imported = shared.filter((name) => new RegExp(`\\b${name}\\b`).test(text))
  return `/** The groups of operations, from their declarations. */

import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { ${imported.join(", ")} } from "./schemas.ts"
${text}`
}
