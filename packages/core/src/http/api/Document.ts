/** Completes the OpenAPI document that `HttpApi` makes from the schemas. */

import type * as OpenApi from "effect/http-api/OpenApi"
import { eventStream } from "../Accept.ts"
import * as ApiError from "../ApiError.ts"
import type {
  Content,
  Document,
  MediaType,
  Operation,
  Parameter,
  PathItem,
  Reference,
  Response,
} from "../docs/OpenApi.ts"
import * as Route from "../Route.ts"
import * as Events from "./Events.ts"
import * as Example from "./Example.ts"
import * as Notifications from "./Notifications.ts"
import * as Responses from "./Responses.ts"
import { isRecord, refTo, schemaOf, type Schemas, withoutCopies } from "./Simplified.ts"

const json = "application/json"

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
    headers: Responses.headersNamed(
      canRepeat ? [...Responses.everywhere, "Idempotent-Replayed"] : Responses.everywhere,
    ),
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
  const errors = Responses.tagsIn(schema)
  return context.share(errors.join("Or"), Responses.failureOf(errors, schema))
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
    Responses.tagsIn(schemaOf(content?.[json]?.schema)).includes("IdempotencyMismatch"),
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
        name: Notifications.tagOfNotifications,
        description:
          "Requests to webhooks, each repeated until it is answered with a 2xx status within 15 seconds.",
      },
    ],
    paths: Object.fromEntries(paths),
    webhooks: Object.fromEntries(
      Events.notifications.map((one) => Notifications.webhookOf(one, schemas)),
    ),
    components: {
      headers: Responses.headers,
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
