/** The API as an `HttpApi`, and its OpenAPI document. Only programs that import it load schemas. */

import * as HttpApi from "effect/http-api/HttpApi"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Predicate from "effect/Predicate"
import * as Struct from "effect/Struct"
import { type ApiErrorTag, apiErrors, describeApiError } from "../api/errors.ts"
import { eventStreamType } from "../http/request.ts"
import { respondError } from "../http/response.ts"
import { type Operation, requiredRole, routes } from "../http/routes.ts"
import { DocsGroup } from "./docs.ts"
import { type Notification, notifications } from "./events.ts"
import {
  ApiKeysGroup,
  AuditGroup,
  EventsGroup,
  IdentityGroup,
  MembershipsGroup,
  ProjectsGroup,
  RealtimeGroup,
  StatusGroup,
  WebhooksGroup,
} from "./groups.generated.ts"
import { exampleId, samples } from "./schemas.ts"
import type {
  JsonReference,
  JsonSchema,
  MediaType,
  OpenApiContent,
  OpenApiDocument,
  OpenApiHeader,
  OpenApiOperation,
  OpenApiParameter,
  OpenApiResponse,
  PathItem,
} from "./types.ts"

export { Authorization } from "./schemas.ts"

/** A document's schemas, by name. */
type Schemas = OpenApiDocument["components"]["schemas"]

/** Returns the reference to a component in the document. */
const refTo = (kind: keyof OpenApiDocument["components"], name: string): JsonReference => ({
  $ref: `#/components/${kind}/${name}`,
})

/** `HttpApi` numbers a schema's copies: `Role_2` is `Role`. */
const nameOfCopy = (name: string): string => name.replace(/_\d+$/, "")

/** Whether a value is an object, possibly a schema. */
const isRecord = (value: unknown): value is JsonSchema =>
  Predicate.isObject(value) && !Array.isArray(value)

/**
 * Simplifies a schema or a part made by `HttpApi`. Objects may have further properties, so that a later
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

/** Simplifies a schema made by `HttpApi`. */
const schemaOf = (value: unknown): JsonSchema => {
  const schema = simplify(value)
  return isRecord(schema) ? schema : {}
}

/** Simplifies schemas, and leaves out copies. Each copy must equal its original. */
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

const isSchema = (value: unknown): value is JsonSchema => Predicate.isObject(value)

const schemasIn = (value: unknown): ReadonlyArray<JsonSchema> =>
  Array.isArray(value) ? value.filter(isSchema) : []

const first = (value: unknown): unknown => (Array.isArray(value) ? value[0] : undefined)

/** Follows a reference to its schema. Returns any other schema as it is. */
const resolve = (schema: JsonSchema, schemas: Readonly<Record<string, JsonSchema>>): JsonSchema => {
  const { $ref } = schema
  return typeof $ref === "string" ? (schemas[$ref.slice($ref.lastIndexOf("/") + 1)] ?? {}) : schema
}

/**
 * Makes the function that makes a schema's example.
 *
 * @param schemas - the referenced schemas
 * @param withOptional - whether objects have their optional properties
 */
const makeExample = (
  schemas: Readonly<Record<string, JsonSchema>>,
  withOptional: boolean,
): ((schema: JsonSchema) => unknown) => {
  const object = ({ properties, required }: JsonSchema): unknown => {
    const needed: ReadonlyArray<unknown> = Array.isArray(required) ? required : []
    return Object.fromEntries(
      Object.entries(isSchema(properties) ? properties : {}).flatMap(([name, property]) =>
        isSchema(property) && (withOptional || needed.includes(name))
          ? [[name, exampleOf(property)]]
          : [],
      ),
    )
  }

  const array = ({ items, prefixItems }: JsonSchema): unknown =>
    prefixItems === undefined
      ? [exampleOf(isSchema(items) ? items : {})]
      : schemasIn(prefixItems).map(exampleOf)

  const exampleOf = (given: JsonSchema): unknown => {
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

const integer: JsonSchema = { type: "integer", minimum: 0 }

/** Response header fields. */
const headers: OpenApiDocument["components"]["headers"] = {
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
} satisfies Record<string, OpenApiHeader>

/** Header fields in every response. */
const everywhere = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"]

/** Refers to header fields. */
const headersNamed = (names: ReadonlyArray<string>): Readonly<Record<string, JsonReference>> =>
  Object.fromEntries(names.map((name) => [name, refTo("headers", name)]))

const subject = {
  requestId: exampleId,
  method: "PATCH",
  path: "/v2/projects/demo/memberships/1001/extend",
}

/** The response in an error's example. */
const answerTo = (tag: ApiErrorTag): unknown =>
  JSON.parse(
    respondError(
      subject,
      { bucket: "key", limit: 100, remaining: 99, reset: 0, refill: 1 },
      samples[tag].error,
    ).body,
  )

/** The response to errors with the same status. */
const failureOf = (tags: ReadonlyArray<ApiErrorTag>, schema: JsonSchema): OpenApiResponse => {
  const extra = tags.flatMap((tag) => Object.keys(describeApiError(samples[tag].error).headers))
  return {
    description: tags.map((tag) => samples[tag].when).join(" Or: "),
    headers: headersNamed([...everywhere, ...new Set(extra)]),
    content: {
      "application/json": {
        schema,
        examples: Object.fromEntries(
          tags.map((tag) => [tag, { summary: samples[tag].when, value: answerTo(tag) }]),
        ),
      },
    },
  }
}

const tags = Struct.keys(apiErrors)

/** The errors with schemas in a response. */
const tagsIn = (schema: JsonSchema): ReadonlyArray<ApiErrorTag> => {
  const alternatives: ReadonlyArray<unknown> = Array.isArray(schema["anyOf"])
    ? schema["anyOf"]
    : [schema]
  const refs = new Set(alternatives.map((one) => (isRecord(one) ? one["$ref"] : undefined)))
  return tags.filter((tag) => refs.has(refTo("schemas", tag).$ref))
}

const signatureHeaders: ReadonlyArray<OpenApiParameter> = [
  {
    name: "webhook-id",
    in: "header",
    description: "The id of the event, the same in every attempt to deliver it.",
    required: true,
    schema: { ...refTo("schemas", "Uuid") },
    example: exampleId,
  },
  {
    name: "webhook-timestamp",
    in: "header",
    description: "The time of the attempt, in seconds since 1970.",
    required: true,
    schema: { type: "integer", minimum: 0 },
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

/** The group for requests to webhooks. */
const tagOfNotifications = "Notifications"

/** The request that notifies a webhook about an event. */
const webhookOf = (
  { name, type, when }: Notification,
  schemas: Schemas,
): readonly [string, PathItem] => {
  const schema = { ...refTo("schemas", name) }
  const post: OpenApiOperation = {
    operationId: `on.${type}`,
    summary: when,
    description: when,
    tags: [tagOfNotifications],
    security: [],
    parameters: signatureHeaders,
    requestBody: {
      required: true,
      content: { "application/json": { schema, example: makeExample(schemas, true)(schema) } },
    },
    responses: {
      "2XX": { description: "The event was received." },
      "410": { description: "The webhook is disabled, and gets no further events." },
      default: { description: "The event is sent again later." },
    },
  }
  return [type, { post }]
}

const json = "application/json"

/** The parameters for paged lists. Queries are text, so their schemas cannot describe numbers. */
const pageParameters: Readonly<Record<string, OpenApiParameter>> = {
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
    description: "The previous page's `next`; without it, the first page.",
    required: false,
    schema: { type: "string" },
  },
}

const parameterOf = (
  { in: place, name, required, schema: given }: OpenApi.OpenAPISpecParameter,
  schemas: Schemas,
): OpenApiParameter => {
  const ofPage = place === "query" ? pageParameters[name] : undefined
  if (ofPage !== undefined) return ofPage
  const { description, ...schema } = schemaOf(given)
  return {
    name,
    in: place,
    description: String(description ?? resolve(schema, schemas)["description"]),
    required,
    schema,
    ...(required && { example: makeExample(schemas, true)(schema) }),
  }
}

/** The operation being completed, and facts about it. */
interface Context {
  readonly method: string
  readonly path: string
  readonly schemas: Schemas
  /** Whether a request may have an idempotency key. */
  readonly canRepeat: boolean
  /** Whether clients can have a stream instead. */
  readonly canStream: boolean
  /** Keeps a response, and returns the reference to it. */
  readonly share: (name: string, response: OpenApiResponse) => JsonReference
}

const exampleOfPath = (path: string, parameters: ReadonlyArray<OpenApiParameter>): string =>
  parameters.reduce(
    (filled, { example, name }) => filled.replace(`{${name}}`, String(example)),
    path,
  )

const successOf = (
  content: OpenApi.OpenApiSpecContent,
  { canRepeat, canStream, method, path, schemas }: Context,
): OpenApiResponse => {
  const mediaTypes = Object.entries(content).map(([type, { schema: given }]) => {
    const schema = schemaOf(given)
    const example = makeExample(schemas, true)(schema)
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
      ...(canStream && { [eventStreamType]: { schema: { type: "string" } } }),
    },
  }
}

const responseOf = (
  status: string,
  { content = {} }: OpenApi.OpenApiSpecResponse,
  context: Context,
): OpenApiResponse | JsonReference => {
  if (status === "200") return successOf(content, context)
  const schema = schemaOf(content[json]?.schema)
  const errors = tagsIn(schema)
  return context.share(errors.join("Or"), failureOf(errors, schema))
}

const bodyOf = (content: OpenApi.OpenApiSpecContent, schemas: Schemas): OpenApiContent =>
  Object.fromEntries(
    Object.entries(content).map(([type, { schema: given }]) => {
      const schema = schemaOf(given)
      return [type, { schema, example: makeExample(schemas, false)(schema) }]
    }),
  )

const isOperation = (name: string): name is Operation => Object.hasOwn(routes, name)

const roleOf = (operationId: string) =>
  isOperation(operationId) ? requiredRole(operationId) : "client"

/** Names the role needed for an operation, unless any key will do. */
const roleNote = (role: ReturnType<typeof roleOf>): string => {
  if (role === "none") return " Needs no key."
  return role === "client" ? "" : ` Needs the role \`${role}\`.`
}

/** Operations that can answer with a stream. */
const streaming: ReadonlySet<string> = new Set<Operation>(["events.list"])

/** Errors for operations with a body. */
const ofBodies = new Set(
  [apiErrors.PayloadTooLarge, apiErrors.UnsupportedMediaType].map(({ status }) => String(status)),
)

const idempotencyKey: OpenApiParameter = {
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

/** The error for operations above the least role. */
const ofRoles = String(apiErrors.Forbidden.status)

/** Operations for every client, with a field that needs a role. */
const partlyForbidden: ReadonlySet<string> = new Set<Operation>(["memberships.extend"])

const canBeForbidden = (operationId: string): boolean =>
  roleOf(operationId) !== "client" || partlyForbidden.has(operationId)

const operationOf = (
  { description = "", operationId, summary = "", ...given }: OpenApi.OpenAPISpecOperation,
  context: Context,
): OpenApiOperation => {
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
        .filter(([status]) => status !== ofRoles || canBeForbidden(operationId))
        .map(([status, response]) => [status, responseOf(status, response, inPlace)]),
    ),
  }
}

/** Completes the document. */
export const complete = (spec: OpenApi.OpenAPISpec): OpenApiDocument => {
  const schemas = withoutCopies(spec.components.schemas)
  const responses: Record<string, OpenApiResponse> = {}
  const share = (name: string, response: OpenApiResponse): JsonReference => {
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
    webhooks: Object.fromEntries(notifications.map((one) => webhookOf(one, schemas))),
    components: {
      headers: headers,
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

/**
 * The API as a value, for a typed client.
 *
 * @example
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as FetchHttpClient from "effect/http/FetchHttpClient"
 * import * as HttpApiClient from "effect/http-api/HttpApiClient"
 * import * as Redacted from "effect/Redacted"
 * import { Api, Authorization } from "tenure/openapi"
 *
 * const program = Effect.gen(function* () {
 *   const client = yield* HttpApiClient.make(Api, { baseUrl: "http://127.0.0.1:3000" })
 *   const { data } = yield* client.memberships.extend({
 *     params: { project_id: "p1", user_id: "1001" },
 *     payload: { extend: "2099-01-01T00:00:00.000Z" },
 *   })
 *   return data.new_end_date
 * }).pipe(
 *   Effect.provide(Authorization.layerClient(Redacted.make("a token"))),
 *   Effect.provide(FetchHttpClient.layer),
 * )
 * ```
 */
export class Api extends HttpApi.make("tenure")
  .add(
    MembershipsGroup,
    ProjectsGroup,
    WebhooksGroup,
    EventsGroup,
    RealtimeGroup,
    ApiKeysGroup,
    AuditGroup,
    IdentityGroup,
    StatusGroup,
    DocsGroup,
  )
  .annotate(
    HttpApi.AdditionalSchemas,
    notifications.map(({ schema }) => schema),
  )
  .annotateMerge(
    OpenApi.annotations({
      title: "Tenure",
      version: "2",
      description:
        "Sets the end dates of memberships, and notifies webhooks of every change. Every response has the same envelope; its `request_id` identifies the request. Objects may get further properties in the future.",
    }),
  ) {}

/** Makes the API's OpenAPI document, for a server with the API at its root. */
export const openApi = (): OpenApiDocument => complete(OpenApi.fromApi(Api))
