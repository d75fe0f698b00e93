/** Checks responses by the OpenAPI document, and records the seen ones. */

import type { ApiRequest, ApiResponse } from "@tenure/core/adapter"
import { type Operation, makeRoutes } from "@tenure/core/internal"
import { openApi } from "@tenure/core/openapi"
import formats from "ajv-formats"
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js"
import * as Predicate from "effect/Predicate"

const document = openApi()

/** Closes every object schema, so that an undocumented property is a mismatch. */
const close = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(close)
  if (!Predicate.isObject(value)) return value
  const closed = Object.fromEntries(
    Object.entries(value).map(([name, part]) => [name, close(part)]),
  )
  return "properties" in closed && closed["type"] === "object"
    ? { ...closed, additionalProperties: false }
    : closed
}

const ajv = new Ajv2020({ strict: false, allErrors: true })
formats.default(ajv)
ajv.addSchema({ $id: "openapi", components: close(document.components) })

// By schema object, because printing a schema for each response would take most of the time.
const compiled = new WeakMap<object, ValidateFunction>()

const compile = (schema: object): ValidateFunction => {
  const validate = ajv.compile(
    JSON.parse(JSON.stringify(close(schema)).replaceAll('"#/', '"openapi#/')),
  )
  compiled.set(schema, validate)
  return validate
}

/** Returns a message if a value does not match a schema in the document. */
const faultOf = (schema: object, value: unknown): string | undefined => {
  const validate = compiled.get(schema) ?? compile(schema)
  return validate(value) ? undefined : ajv.errorsText(validate.errors)
}

const routes = makeRoutes("all")

/** Returns a request's possible operations: the one with its method, or all on its path. */
const operationsOf = (request: ApiRequest, basePath: string): ReadonlyArray<Operation> => {
  const methods = routes.match(request.path, basePath)?.value
  if (methods === undefined) return []
  const operation = methods.get(request.method)
  return operation === undefined ? [...methods.values()] : [operation]
}

const operations = new Map(
  Object.values(document.paths)
    .flatMap((methods) => Object.values(methods))
    .map((operation) => [operation.operationId, operation] as const),
)

const nameOf = ($ref: string): string => $ref.slice($ref.lastIndexOf("/") + 1)

/** Returns an operation's documented response with a status. */
const documented = (operation: string, status: number) => {
  const response = operations.get(operation)?.responses[String(status)]
  return response !== undefined && "$ref" in response
    ? document.components.responses[nameOf(response.$ref)]
    : response
}

const valueOf = (text: string, { type }: Readonly<Record<string, unknown>>): unknown =>
  type === "integer" ? Number(text) : text

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

// Every response has these, and documents need not name them (OpenAPI 3.1, 4.8.17).
const unnamed = new Set(["content-type", "cache-control", "x-accel-buffering"])

// Additional headers on the documentation pages.
const ofPages = new Set(["content-security-policy", "referrer-policy", "x-content-type-options"])

/** Returns the mismatches in an operation's response. */
const faultsOf = (operation: string, { body, headers, status }: ApiResponse) => {
  const response = documented(operation, status)
  if (response === undefined) return ["is not documented"]
  const names = Object.keys(response.headers ?? {})
  const sent = new Map(Object.entries(headers).map(([name, text]) => [name.toLowerCase(), text]))
  const headerFaults = names.flatMap((name) => {
    const text = sent.get(name.toLowerCase())
    const { required = true, schema = {} } = document.components.headers[name] ?? {}
    if (text === undefined && !required) return []
    const fault = text === undefined ? "is missing" : faultOf(schema, valueOf(text, schema))
    return fault === undefined ? [] : [`header ${name} ${fault}`]
  })
  const known = new Set(names.map((name) => name.toLowerCase()))
  const unknown = [...sent.keys()].filter(
    (name) =>
      !known.has(name) &&
      !unnamed.has(name) &&
      !(operation.startsWith("docs.") && ofPages.has(name)),
  )
  const type = headers["Content-Type"]?.split(";")[0] ?? ""
  const schema = response.content?.[type]?.schema
  const bodyFault =
    schema === undefined
      ? `has the type ${type}`
      : faultOf(schema, parse(typeof body === "string" ? body : ""))
  return [
    ...headerFaults,
    ...unknown.map((name) => `header ${name} is not documented`),
    ...(bodyFault === undefined ? [] : [bodyFault]),
  ]
}

/** The seen operations and statuses, such as `memberships.extend 200`. */
export const seen = new Set<string>()

/** The seen operations and error codes, such as `memberships.extend MEMBERSHIP_NOT_FOUND`. */
export const seenErrors = new Set<string>()

/** The mismatches in responses. */
export const faults = new Set<string>()

/** Checks a response. */
export const check = (request: ApiRequest, basePath: string, response: ApiResponse): void => {
  // The document does not describe paths disabled by an option.
  if (typeof response.body === "string" && response.body.includes('"ROUTE_NOT_FOUND"')) return
  const body = typeof response.body === "string" ? response.body : ""
  for (const operation of operationsOf(request, basePath)) {
    seen.add(`${operation} ${response.status}`)
    for (const [, code = ""] of body.matchAll(/"error_code":"(\w+)"/g)) {
      seenErrors.add(`${operation} ${code}`)
    }
    for (const fault of faultsOf(operation, response)) {
      faults.add(`${operation} ${response.status} ${fault}`)
    }
  }
}

/** Every operation and status in the document. */
export const all: ReadonlyArray<string> = [...operations.values()].flatMap(
  ({ operationId, responses }) =>
    Object.keys(responses).map((status) => `${operationId} ${status}`),
)

/** Returns the mismatches in the document's examples. */
export const faultsOfExamples = (): ReadonlyArray<string> => {
  const contents = [
    ...[...operations.values()].flatMap(({ operationId, requestBody, responses }) => [
      [operationId, requestBody?.content] as const,
      ...Object.values(responses).map(
        (response) => [operationId, "$ref" in response ? {} : response.content] as const,
      ),
    ]),
    ...Object.entries(document.components.responses).map(
      ([name, { content }]) => [name, content] as const,
    ),
    ...Object.entries(document.webhooks).map(
      ([type, { post }]) => [type, post?.requestBody?.content] as const,
    ),
  ]
  return contents.flatMap(([name, content = {}]) =>
    Object.values(content).flatMap(({ example, examples = {}, schema }) =>
      [
        ...(example === undefined ? [] : [example]),
        ...Object.values(examples).map((one) => one.value),
      ]
        .map((value) => faultOf(schema, value))
        .flatMap((fault) => (fault === undefined ? [] : [`${name}: ${fault}`])),
    ),
  )
}
