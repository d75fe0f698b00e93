/** Completes the OpenAPI document that `HttpApi` makes from the schemas. */

import type * as OpenApi from "effect/http-api/OpenApi"
import * as Predicate from "effect/Predicate"
import * as Struct from "effect/Struct"
import { eventStream } from "../Accept.ts"
import * as ApiError from "../ApiError.ts"
import type {
  Content,
  Document,
  Header,
  MediaType,
  Operation,
  Parameter,
  PathItem,
  Reference,
  Response,
  Schema,
} from "../docs/OpenApi.ts"
import * as Envelope from "../Envelope.ts"
import * as Route from "../Route.ts"
import * as Events from "./Events.ts"
import * as Example from "./Example.ts"
import * as Fields from "./Fields.ts"
import { samples } from "./Samples.ts"

type Schemas = Document["components"]["schemas"]

const refTo = (kind: keyof Document["components"], name: string): Reference => ({
  $ref: `#/components/${kind}/${name}`,
})

const json = "application/json"

/** `HttpApi` numbers the copies of a schema: `Role_2` is `Role`. */
const nameOfCopy = (name: string): string => name.replace(/_\d+$/, "")

const isRecord = (value: unknown): value is Schema =>
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

const schemaOf = (value: unknown): Schema => {
  const schema = simplify(value)
  return isRecord(schema) ? schema : {}
}

/** Simplifies schemas, and leaves out copies, which must be equal to what they are copies of. */
const withoutCopies = (given: OpenApi.OpenAPIComponents["schemas"]): Schemas => {
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

const integer: Schema = { type: "integer", minimum: 0 }

/** The header fields of responses. */
const headers: Document["components"]["headers"] = {
  "X-RateLimit-Limit": {
    description: "The most requests in the current window.",
    required: true,
    schema: { ...integer, examples: [100] },
  },
  "X-RateLimit-Remaining": {
    description: "How many requests are left in the current window.",
    required: true,
    schema: { ...integer, examples: [99] },
  },
  "X-RateLimit-Reset": {
    description: "When the window ends, in seconds since 1970.",
    required: true,
    schema: { ...integer, examples: [4_070_908_800] },
  },
  Allow: {
    description: "The methods that the path allows.",
    required: true,
    schema: { type: "string", examples: ["GET, POST"] },
  },
  "Retry-After": {
    description: "How long to wait, in seconds.",
    required: true,
    schema: { type: "integer", minimum: 1, examples: [3] },
  },
  "WWW-Authenticate": {
    description: "The scheme of authentication.",
    required: true,
    schema: { type: "string", examples: ["Bearer"] },
  },
  "Idempotent-Replayed": {
    description: "Sent if an earlier request with the same idempotency key made the change.",
    required: false,
    schema: { type: "string", enum: ["true"] },
  },
} satisfies Record<string, Header>

const everywhere = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"]

const headersNamed = (names: ReadonlyArray<string>): Readonly<Record<string, Reference>> =>
  Object.fromEntries(names.map((name) => [name, refTo("headers", name)]))

const subject = {
  requestId: Fields.exampleId,
  method: "PATCH",
  path: "/v2/projects/demo/memberships/1001/extend",
}

/** The response to the example of an error. */
const answerTo = (tag: ApiError.Tag): unknown =>
  JSON.parse(
    Envelope.refuse(
      subject,
      { bucket: "key", limit: 100, remaining: 99, reset: 0, refill: 1 },
      samples[tag].error,
    ).body,
  )

/** The response to errors with the same status. */
const failureOf = (tags: ReadonlyArray<ApiError.Tag>, schema: Schema): Response => {
  const extra = tags.flatMap((tag) => Object.keys(ApiError.describe(samples[tag].error).headers))
  return {
    description: tags.map((tag) => samples[tag].when).join(" Or: "),
    headers: headersNamed([...everywhere, ...new Set(extra)]),
    content: {
      [json]: {
        schema,
        examples: Object.fromEntries(
          tags.map((tag) => [tag, { summary: samples[tag].when, value: answerTo(tag) }]),
        ),
      },
    },
  }
}

const tags = Struct.keys(ApiError.table)

/** The errors whose schemas a response has. */
const tagsIn = (schema: Schema): ReadonlyArray<ApiError.Tag> => {
  const alternatives: ReadonlyArray<unknown> = Array.isArray(schema["anyOf"])
    ? schema["anyOf"]
    : [schema]
  const refs = new Set(alternatives.map((one) => (isRecord(one) ? one["$ref"] : undefined)))
  return tags.filter((tag) => refs.has(refTo("schemas", tag).$ref))
}

/** The parameters of paged lists. Queries are text, so their schemas cannot say it. */
const pageParameters: Readonly<Record<string, Parameter>> = {
  limit: {
    name: "limit",
    in: "query",
    description: "The most items to return.",
    required: false,
    schema: { type: "integer", minimum: 1, maximum: 1000, default: 100, examples: [100] },
  },
  after: {
    name: "after",
    in: "query",
    description: "The cursor that the page before has as `next`; without it, the first page.",
    required: false,
    schema: { type: "string" },
  },
}

const parameterOf = (
  { in: place, name, required, schema: given }: OpenApi.OpenAPISpecParameter,
  schemas: Schemas,
): Parameter => {
  const ofPage = place === "query" ? pageParameters[name] : undefined
  if (ofPage !== undefined) return ofPage
  const { description, ...schema } = schemaOf(given)
  return {
    name,
    in: place,
    description: String(description ?? Example.resolve(schema, schemas)["description"]),
    required,
    schema,
    ...(required && { example: Example.make(schemas, true)(schema) }),
  }
}

/** What is known of the operation that is completed. */
interface Context {
  readonly method: string
  readonly path: string
  readonly schemas: Schemas
  /** Whether a request may have an idempotency key. */
  readonly canRepeat: boolean
  /** Whether clients can have a stream instead. */
  readonly canStream: boolean
  /** Keeps a response, and returns the reference to it. */
  readonly share: (name: string, response: Response) => Reference
}

const exampleOfPath = (path: string, parameters: ReadonlyArray<Parameter>): string =>
  parameters.reduce(
    (filled, { example, name }) => filled.replace(`{${name}}`, String(example)),
    path,
  )

const successOf = (
  content: OpenApi.OpenApiSpecContent,
  { canRepeat, canStream, method, path, schemas }: Context,
): Response => {
  const mediaTypes = Object.entries(content).map(([type, { schema: given }]) => {
    const schema = schemaOf(given)
    const example = Example.make(schemas, true)(schema)
    const mediaType: MediaType =
      isRecord(example) && "request_id" in example
        ? { schema, example: { ...example, method, path } }
        : { schema }
    return [type, mediaType] as const
  })
  const messages = mediaTypes.flatMap(([, { example }]) =>
    isRecord(example) ? [String(example["message"])] : [],
  )
  return {
    description: messages[0] ?? "Success.",
    headers: headersNamed(canRepeat ? [...everywhere, "Idempotent-Replayed"] : everywhere),
    content: {
      ...Object.fromEntries(mediaTypes),
      ...(canStream && { [eventStream]: { schema: { type: "string" } } }),
    },
  }
}

const responseOf = (
  status: string,
  { content = {} }: OpenApi.OpenApiSpecResponse,
  context: Context,
): Response | Reference => {
  if (status === "200") return successOf(content, context)
  const schema = schemaOf(content[json]?.schema)
  const errors = tagsIn(schema)
  return context.share(errors.join("Or"), failureOf(errors, schema))
}

const bodyOf = (content: OpenApi.OpenApiSpecContent, schemas: Schemas): Content =>
  Object.fromEntries(
    Object.entries(content).map(([type, { schema: given }]) => {
      const schema = schemaOf(given)
      return [type, { schema, example: Example.make(schemas, false)(schema) }]
    }),
  )

const isOperation = (name: string): name is Route.Operation => Object.hasOwn(Route.table, name)

const roleOf = (operationId: string) =>
  isOperation(operationId) ? Route.roleOf(operationId) : "client"

/** Says who may call an operation, where it is not everyone with a key. */
const roleNote = (role: ReturnType<typeof roleOf>): string => {
  if (role === "none") return " Needs no key."
  return role === "client" ? "" : ` Needs the role \`${role}\`.`
}

/** The operations that can answer with a stream. */
const streaming: ReadonlySet<string> = new Set<Route.Operation>(["events.list"])

/** The errors of operations that have a body. */
const ofBodies = new Set(
  [ApiError.table.PayloadTooLarge, ApiError.table.UnsupportedMediaType].map(({ status }) =>
    String(status),
  ),
)

const idempotencyKey: Parameter = {
  name: "Idempotency-Key",
  in: "header",
  description:
    "A key of your own. A request that repeats it is answered as the first one, and changes nothing.",
  required: false,
  schema: { type: "string", pattern: "^[!-~]{1,255}$" },
  example: "invoice-2099-117",
}

const takesIdempotencyKey = (responses: OpenApi.OpenAPISpecResponses): boolean =>
  Object.values(responses).some(({ content }) =>
    tagsIn(schemaOf(content?.[json]?.schema)).includes("IdempotencyMismatch"),
  )

/** The error of operations that need more than the least role. */
const ofRoles = String(ApiError.table.Forbidden.status)

const operationOf = (
  { description = "", operationId, summary = "", ...given }: OpenApi.OpenAPISpecOperation,
  context: Context,
): Operation => {
  const parameters = given.parameters.map((one) => parameterOf(one, context.schemas))
  const role = roleOf(operationId)
  const canRepeat = takesIdempotencyKey(given.responses)
  const inPlace = {
    ...context,
    canRepeat,
    canStream: streaming.has(operationId),
    path: exampleOfPath(context.path, parameters),
  }
  return {
    operationId,
    summary,
    description: `${description}${roleNote(role)}`,
    tags: given.tags,
    security: given.security,
    parameters: canRepeat ? [...parameters, idempotencyKey] : parameters,
    ...(given.requestBody !== undefined && {
      requestBody: {
        required: given.requestBody.required,
        content: bodyOf(given.requestBody.content, context.schemas),
      },
    }),
    responses: Object.fromEntries(
      Object.entries(given.responses)
        .filter(([status]) => given.requestBody !== undefined || !ofBodies.has(status))
        .filter(([status]) => role !== "client" || status !== ofRoles)
        .map(([status, response]) => [status, responseOf(status, response, inPlace)]),
    ),
  }
}

const signatureHeaders: ReadonlyArray<Parameter> = [
  {
    name: "webhook-id",
    in: "header",
    description: "The id of the event, the same in every attempt to deliver it.",
    required: true,
    schema: { ...refTo("schemas", "Uuid") },
    example: Fields.exampleId,
  },
  {
    name: "webhook-timestamp",
    in: "header",
    description: "The time of the attempt, in seconds since 1970.",
    required: true,
    schema: integer,
    example: 4_070_908_800,
  },
  {
    name: "webhook-signature",
    in: "header",
    description:
      "The signatures of `id.timestamp.body`, separated by spaces: `v1,` and the base64 of an HMAC-SHA-256 by a secret of the webhook, `v1a,` and that of an Ed25519 signature.",
    required: true,
    schema: { type: "string", pattern: "^v1a?,[A-Za-z0-9+/=]+( v1a?,[A-Za-z0-9+/=]+)*$" },
    example: "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
  },
]

const tagOfNotifications = "Notifications"

/** The request that tells a webhook of an event. */
const webhookOf = (
  { name, type, when }: Events.Notification,
  schemas: Schemas,
): readonly [string, PathItem] => {
  const schema = { ...refTo("schemas", name) }
  const post: Operation = {
    operationId: `on.${type}`,
    summary: when,
    description: when,
    tags: [tagOfNotifications],
    security: [],
    parameters: signatureHeaders,
    requestBody: {
      required: true,
      content: { [json]: { schema, example: Example.make(schemas, true)(schema) } },
    },
    responses: {
      "2XX": { description: "The event was received." },
      "410": { description: "The webhook is disabled, and gets no further events." },
      default: { description: "The event is sent again later." },
    },
  }
  return [type, { post }]
}

/** Completes the document. */
export const complete = (spec: OpenApi.OpenAPISpec): Document => {
  const schemas = withoutCopies(spec.components.schemas)
  const responses: Record<string, Response> = {}
  const share = (name: string, response: Response): Reference => {
    responses[name] = response
    return refTo("responses", name)
  }
  const paths = Object.entries(spec.paths).map(([path, methods]): [string, PathItem] => [
    path,
    Object.fromEntries(
      Object.entries(methods).flatMap(([method, operation]) =>
        "operationId" in operation
          ? [
              [
                method,
                operationOf(operation, {
                  method: method.toUpperCase(),
                  path,
                  schemas,
                  share,
                  canRepeat: false,
                  canStream: false,
                }),
              ],
            ]
          : [],
      ),
    ),
  ])
  return {
    openapi: spec.openapi,
    info: {
      title: spec.info.title,
      version: spec.info.version,
      description: spec.info.description ?? "",
      license: { name: "MIT", identifier: "MIT" },
      contact: { name: "Tenure", url: "https://github.com/tenure/tenure/issues" },
    },
    servers: [{ url: "/", description: "This server." }],
    tags: [
      ...spec.tags.map(({ description = "", name }) => ({ name, description })),
      {
        name: tagOfNotifications,
        description:
          "Requests to webhooks, each repeated until it is answered with a 2xx status within 15 seconds.",
      },
    ],
    paths: Object.fromEntries(paths),
    webhooks: Object.fromEntries(Events.notifications.map((one) => webhookOf(one, schemas))),
    components: {
      headers,
      responses,
      schemas,
      securitySchemes: Object.fromEntries(
        Object.entries(spec.components.securitySchemes).map(([name, scheme]) => [
          name,
          { ...scheme, description: "The token of an API key." },
        ]),
      ),
    },
  }
}
