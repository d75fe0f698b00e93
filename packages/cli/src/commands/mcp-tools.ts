/** The tools in `tenure mcp`: operations from the OpenAPI document, with their inputs as JSON Schemas. */

import type { OpenApiDocument } from "@tenure/core/openapi"
import * as Predicate from "effect/Predicate"

type Schemas = OpenApiDocument["components"]["schemas"]
type Operation = OpenApiDocument["paths"][string][string]
type Fields = Readonly<Record<string, unknown>>

/** How a tool asks whether a change is meant: by a dry run, or by a field. Reading needs neither. */
type Safeguard = "none" | "dry_run" | "confirm"

/** An operation, as agents call it. */
export interface McpTool {
  readonly name: string
  /** The operation, for example `memberships.extend`. */
  readonly operation: string
  readonly title: string
  readonly description: string
  readonly safeguard: Safeguard
  /** Whether repeating a call changes nothing. */
  readonly isIdempotent: boolean
  /** The input fields' schemas. */
  readonly fields: Fields
  readonly required: ReadonlyArray<string>
  /** Fields that rule out a dry run. */
  readonly alwaysReal: ReadonlyArray<string>
}

/** Operations without a tool. Their answers carry a credential, or they lock somebody out for good. */
const withoutTool: ReadonlySet<string> = new Set([
  "apiKeys.issue",
  "apiKeys.revoke",
  "docs.asyncDocument",
  "docs.document",
  "docs.page",
  "projects.delete",
  "realtime.issueTicket",
  "webhooks.get",
  "webhooks.list",
  "webhooks.rotate",
])

/** Credential fields in answers and inputs. */
export const credentialFields: ReadonlySet<string> = new Set(["secret", "ticket", "token"])

/** The most lines in an agent's import. Longer imports need a file: `tenure members import`. */
const maxImportLines = 100

const isFields = (value: unknown): value is Fields =>
  Predicate.isObject(value) && !Array.isArray(value)

/** Copies a schema and inlines its references, because few agents follow references. */
const inline = (value: unknown, schemas: Schemas): unknown => {
  if (Array.isArray(value)) return value.map((item) => inline(item, schemas))
  if (!isFields(value)) return value
  const { $ref: reference, ...own } = value
  const copy = Object.fromEntries(
    Object.entries(own).map(([name, one]) => [name, inline(one, schemas)]),
  )
  if (typeof reference !== "string") return copy
  const target = inline(schemas[reference.replace(/^.*\//, "")], schemas)
  return isFields(target) ? { ...target, ...copy } : copy
}

const fieldsOf = (schema: unknown): Fields =>
  isFields(schema) && isFields(schema["properties"]) ? schema["properties"] : {}

/** Returns a body's alternatives, usually one. */
const alternativesOf = (schema: unknown): ReadonlyArray<unknown> =>
  isFields(schema) && Array.isArray(schema["anyOf"]) ? schema["anyOf"] : [schema]

const requiredOf = (schema: unknown): ReadonlyArray<string> =>
  isFields(schema) && Array.isArray(schema["required"])
    ? schema["required"].filter((name) => typeof name === "string")
    : []

/** Returns the fields in a body's alternatives without a dry run, if others have one. */
const alwaysRealOf = (alternatives: ReadonlyArray<Fields>): ReadonlyArray<string> =>
  alternatives.some((fields) => "dry_run" in fields)
    ? alternatives
        .filter((fields) => !("dry_run" in fields))
        .flatMap((fields) => Object.keys(fields))
    : []

/** Returns the input's fields: from the path, the query and a JSON body, and the idempotency key. */
const inputOf = (
  operation: Operation,
  schemas: Schemas,
): Pick<McpTool, "alwaysReal" | "fields" | "required"> => {
  const parameters = operation.parameters.filter(({ name }) => !credentialFields.has(name))
  const placed = parameters.filter(({ in: place }) => place !== "header")
  const body = inline(operation.requestBody?.content["application/json"]?.schema, schemas)
  const alternatives = alternativesOf(body)
  const bodies = alternatives.map(fieldsOf)
  const key = parameters.find(({ in: place }) => place === "header")
  return {
    fields: {
      ...Object.fromEntries(
        placed.map(({ description, name, schema }) => [
          name,
          inline({ ...schema, description }, schemas),
        ]),
      ),
      ...Object.fromEntries(bodies.flatMap((fields) => Object.entries(fields))),
      ...(key && {
        idempotency_key: {
          ...key.schema,
          description:
            "A key of your own. A call that repeats it is answered as the first one, and changes nothing.",
        },
      }),
    },
    required: [
      ...placed.filter(({ required }) => required).map(({ name }) => name),
      ...(alternatives.length === 1 ? requiredOf(body) : []),
    ],
    alwaysReal: alwaysRealOf(bodies),
  }
}

const pauseFields = ["paused_at", "resumes_at"] as const

/** Returns the fields in an import line, which are a grant's, and the kept day and the pause of a membership. */
const linesOf = (schemas: Schemas): Fields => {
  const alternatives = alternativesOf(inline(schemas["Grant"], schemas))
  const { if_absent: _, reason: __, ...granted } = Object.assign({}, ...alternatives.map(fieldsOf))
  return {
    type: "array",
    minItems: 1,
    maxItems: maxImportLines,
    description: `The memberships, at most ${maxImportLines}. Files are for the command tenure members import.`,
    items: {
      type: "object",
      properties: {
        user_id: fieldsOf(inline(schemas["Membership"], schemas))["user_id"],
        ...granted,
        kept_day: {
          type: "integer",
          minimum: 1,
          maximum: 31,
          description: "The day that months count with, as the membership has it.",
        },
        ...Object.fromEntries(
          pauseFields.map((name) => [
            name,
            {
              type: "string",
              format: "date-time",
              description: "Of the pause, as the membership has it.",
            },
          ]),
        ),
      },
      required: ["user_id"],
      additionalProperties: false,
    },
  }
}

const takesLines = ({ requestBody }: Operation): boolean =>
  requestBody?.content["application/x-ndjson"] !== undefined

const safeguards: Readonly<Record<Safeguard, Fields>> = {
  none: {},
  dry_run: {
    dry_run: {
      type: "boolean",
      default: true,
      description: "True, the default, changes nothing, and shows what would happen.",
    },
  },
  confirm: {
    confirm: {
      type: "boolean",
      description: "Must be true: the change has no dry run. Ask your user first.",
    },
  },
}

const safeguardOf = (method: string, fields: Fields): Safeguard => {
  if (method === "get") return "none"
  return "dry_run" in fields ? "dry_run" : "confirm"
}

// Some agents accept neither dots nor capitals.
const nameOf = (operation: string): string =>
  operation.replaceAll(".", "_").replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

const toolOf = (method: string, operation: Operation, schemas: Schemas): McpTool => {
  const { alwaysReal, fields, required } = inputOf(operation, schemas)
  const safeguard = safeguardOf(method, fields)
  return {
    name: nameOf(operation.operationId),
    operation: operation.operationId,
    title: operation.summary,
    description: operation.description,
    safeguard,
    alwaysReal,
    isIdempotent: method !== "post",
    fields: {
      ...fields,
      ...(takesLines(operation) && { lines: linesOf(schemas) }),
      ...safeguards[safeguard],
    },
    required: [
      ...required,
      ...(takesLines(operation) ? ["lines"] : []),
      ...(safeguard === "confirm" ? ["confirm"] : []),
    ],
  }
}

/** Makes the tools. */
export const makeMcpTools = ({ components, paths }: OpenApiDocument): ReadonlyArray<McpTool> =>
  Object.values(paths).flatMap((methods) =>
    Object.entries(methods)
      .filter(([, { operationId }]) => !withoutTool.has(operationId))
      .map(([method, operation]) => toolOf(method, operation, components.schemas)),
  )

/** A call to an operation. */
export interface McpCall {
  readonly _tag: "Call"
  readonly input: Fields
  readonly idempotencyKey: string | undefined
  readonly isDryRun: boolean
}

/** A refused call, and why. */
interface RefusedCall {
  readonly _tag: "Refused"
  readonly message: string
}

const refused = (message: string): RefusedCall => ({ _tag: "Refused", message })

const describeFields = (names: ReadonlyArray<string>): string => names.join(", ") || "none"

/** Decides whether a call is made. The API checks its fields' values. */
export const decideMcpCall = (
  { alwaysReal, fields, name, safeguard }: McpTool,
  given: Fields,
  project: string | undefined,
): McpCall | RefusedCall => {
  // An ignored field might have made the call harmless.
  const unknown = Object.keys(given).filter((field) => !Object.hasOwn(fields, field))
  if (unknown.length > 0)
    return refused(
      `${name} does not take ${describeFields(unknown)}. It takes: ${describeFields(Object.keys(fields))}.`,
    )
  const { confirm, dry_run: dryRun = true, idempotency_key: key, ...rest } = given
  if (safeguard === "confirm" && confirm !== true)
    return refused(
      `${name} makes a change and has no dry run. Tell your user what it will do, and call it again with confirm: true.`,
    )
  if (typeof dryRun !== "boolean") return refused("dry_run must be true or false.")
  if (key !== undefined && typeof key !== "string")
    return refused("idempotency_key must be a text.")
  const lines = rest["lines"]
  if ("lines" in fields && !(Array.isArray(lines) && lines.length <= maxImportLines))
    return refused(`lines must be an array of at most ${maxImportLines} memberships.`)
  const isDryRun = safeguard === "dry_run" && dryRun
  const real = alwaysReal.filter((field) => field in rest)
  if (isDryRun && real.length > 0)
    return refused(
      `With ${describeFields(real)}, ${name} has no dry run. Tell your user what it will do, and call it again with dry_run: false.`,
    )
  return {
    _tag: "Call",
    input: {
      ...("project_id" in fields && { project_id: project }),
      ...rest,
      ...(isDryRun && { dry_run: true }),
    },
    // The change after a dry run may have the same key.
    idempotencyKey: isDryRun ? undefined : key,
    isDryRun,
  }
}
