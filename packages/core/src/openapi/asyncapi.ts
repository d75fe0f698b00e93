/** Makes the AsyncAPI 3 document for events, from the OpenAPI document. */

import * as Predicate from "effect/Predicate"
import type {
  JsonReference,
  JsonSchema,
  OpenApiDocument,
  OpenApiOperation,
  OpenApiParameter,
} from "./types.ts"

/** An AsyncAPI message object. */
interface AsyncMessage {
  readonly name: string
  readonly title: string
  readonly summary: string
  readonly contentType: string
  readonly headers?: JsonSchema
  readonly payload: JsonSchema
  readonly examples: ReadonlyArray<{ readonly payload: unknown; readonly headers?: unknown }>
}

/** Every message's media type. */
const json = "application/json"

/** Returns an object schema with some operation parameters. */
const objectOf = (parameters: ReadonlyArray<OpenApiParameter>): JsonSchema => ({
  type: "object",
  properties: Object.fromEntries(
    parameters.map(({ description, name, schema }) => [name, { ...schema, description }]),
  ),
  required: parameters.flatMap(({ name, required }) => (required ? [name] : [])),
})

const examplesOf = (parameters: ReadonlyArray<OpenApiParameter>) =>
  Object.fromEntries(parameters.map(({ example, name }) => [name, example]))

/** Returns the event notifications sent to webhooks. */
const notifications = ({ webhooks }: OpenApiDocument): ReadonlyArray<AsyncMessage> =>
  Object.entries(webhooks).flatMap(([name, { post }]) => {
    const content = post?.requestBody?.content[json]
    if (post === undefined || content === undefined) return []
    const { parameters, summary } = post
    const { example, schema } = content
    const headers = objectOf(parameters)
    const examples = [{ headers: examplesOf(parameters), payload: example }]
    return [{ name, title: name, summary, contentType: json, headers, payload: schema, examples }]
  })

const eventId: JsonSchema = { type: "string", format: "uuid", description: "The id of the event." }

const exampleId = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"

/** Returns a notification's event as a feed message: with its id inside. */
const fed = ({ examples, name, payload, summary, title }: AsyncMessage): AsyncMessage => ({
  name,
  title,
  summary,
  contentType: json,
  payload: {
    allOf: [payload, { type: "object", properties: { id: eventId }, required: ["id"] }],
  },
  examples: examples.map((example) => ({
    payload: {
      id: exampleId,
      ...(Predicate.isObject(example.payload) ? example.payload : {}),
    },
  })),
})

const reason: JsonSchema = {
  type: "string",
  enum: ["cursor_expired"],
  description: "Why: those after the cursor are not kept any more, or the server has other data.",
}

/** Tells a client that its event stream has a gap and ends. */
const reset: AsyncMessage = {
  name: "reset",
  title: "reset",
  summary:
    "Events are missing, and the stream ends. Read anew what you know of the project, and begin without a cursor.",
  contentType: json,
  payload: { type: "object", properties: { reason }, required: ["reason"] },
  examples: [{ payload: { reason: "cursor_expired" } }],
}

/** Makes the message for a frame. Each frame has its own type. */
const frame = (
  name: string,
  summary: string,
  required: Readonly<Record<string, JsonSchema>>,
  optional: Readonly<Record<string, JsonSchema>>,
  example: object,
): AsyncMessage => ({
  name,
  title: name,
  summary,
  contentType: json,
  payload: {
    type: "object",
    properties: { type: { type: "string", enum: [name] }, ...required, ...optional },
    required: ["type", ...Object.keys(required)],
  },
  examples: [{ payload: { type: name, ...example } }],
})

const text = (description: string): JsonSchema => ({ type: "string", description })

const cursor = text("The place after all events that came before it: begin after it the next time.")

/** Frames sent by a client. */
const fromClient: ReadonlyArray<AsyncMessage> = [
  frame(
    "subscribe",
    "Follows the feed of a project, once for each connection, and again after a reset.",
    { project: text("The id of the project.") },
    {
      after: text("The cursor to begin after, or `start` for the oldest event. By default, now."),
      types: {
        type: "array",
        items: { type: "string" },
        description: "Only events of these types. By default, all.",
      },
    },
    { project: "demo", after: "start", types: ["membership.extended"] },
  ),
  frame("pong", "Answers a ping, at the latest when the next one comes.", {}, {}, {}),
]

/**
 * Returns the frames sent to a client.
 *
 * @param events - the feed's messages
 */
const toClient = (events: ReadonlyArray<AsyncMessage>): ReadonlyArray<AsyncMessage> => [
  frame(
    "event",
    "What has happened.",
    { event: { anyOf: events.map(({ payload }) => payload) } },
    {},
    { event: events[0]?.examples[0]?.payload },
  ),
  frame(
    "cursor",
    "How far the events have come.",
    { cursor },
    {},
    { cursor: "bf74eca13f6d.mhk1v2q8.ou.1" },
  ),
  frame(
    "reset",
    "Events are missing. Read anew what you know of the project, and subscribe without a cursor.",
    { reason },
    {},
    { reason: "cursor_expired" },
  ),
  frame("ping", "Asks for a pong.", {}, {}, {}),
  frame(
    "error",
    "Why the server closes the connection, with 4000 and the status that a request would have.",
    { error_code: text("The code of the error."), message: text("What is wrong.") },
    { retry_after: { type: "integer", description: "How long to wait, in seconds." } },
    { error_code: "PROJECT_NOT_FOUND", message: "Project not found" },
  ),
]

const feedPath = "/v2/projects/{project_id}/events"

const refTo = (place: string): JsonReference => ({ $ref: `#/${place}` })

/** In JSON Schema draft 7, a reference has no siblings. */
const alone = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(alone)
  if (!Predicate.isObject(value)) return value
  const { $ref, ...rest } = Object.fromEntries(
    Object.entries(value).map(([name, part]) => [name, alone(part)]),
  )
  if ($ref === undefined) return rest
  return Object.keys(rest).length === 0 ? { $ref } : { ...rest, allOf: [{ $ref }] }
}

const keyOf = (channel: string, { name }: AsyncMessage): string => `${channel}.${name}`

/** A channel, without its messages. */
interface Channel {
  readonly title: string
  readonly description: string
  readonly address?: string
  readonly servers?: ReadonlyArray<JsonReference>
  readonly parameters?: object
  readonly bindings?: object
}

const channel = (name: string, about: Channel, messages: ReadonlyArray<AsyncMessage>) => ({
  ...about,
  messages: Object.fromEntries(
    messages.map((message) => [message.name, refTo(`components/messages/${keyOf(name, message)}`)]),
  ),
})

/** Tenure's action on a channel's messages. */
const operation = (
  action: "receive" | "send",
  on: string,
  about: Pick<OpenApiOperation, "description" | "summary">,
  messages: ReadonlyArray<AsyncMessage>,
) => ({
  action,
  channel: refTo(`channels/${on}`),
  summary: about.summary,
  description: about.description,
  messages: messages.map(({ name }) => refTo(`channels/${on}/messages/${name}`)),
})

const http = (method: string, more: object = {}) => ({
  http: { method, ...more, bindingVersion: "0.3.0" },
})

const refsIn = (value: unknown): ReadonlyArray<string> =>
  Array.from(
    JSON.stringify(value).matchAll(/"#\/components\/schemas\/(\w+)"/g),
    ([, name = ""]) => name,
  )

/** The schemas referenced by a value, directly or indirectly. */
const schemasOf = (value: unknown, schemas: Readonly<Record<string, JsonSchema>>) => {
  const found = new Set(refsIn(value))
  for (const name of found) for (const other of refsIn(schemas[name])) found.add(other)
  return Object.fromEntries(Object.entries(schemas).filter(([name]) => found.has(name)))
}

const server = (protocol: string, basePath: string) => ({
  host: "{host}",
  pathname: basePath || "/",
  protocol,
  description: "Where the API is mounted.",
  variables: { host: { default: "localhost", description: "The host, with its port." } },
})

/**
 * Prints the document.
 *
 * @param document - the OpenAPI document
 * @param basePath - the prefix before `/v2` in every path
 */
export const printAsyncApi = (document: OpenApiDocument, basePath: string): string => {
  const { components, info, paths, tags } = document
  const toWebhooks = notifications(document)
  const events = toWebhooks.map(fed)
  const inFeed = [...events, reset]
  const ownToClient = toClient(events)
  const ownFromClient = fromClient
  const messages = Object.fromEntries(
    Object.entries({
      feed: inFeed,
      realtime: [...ownFromClient, ...ownToClient],
      webhook: toWebhooks,
    }).flatMap(([name, all]) => all.map((message) => [keyOf(name, message), message] as const)),
  )
  const { description = "", parameters = [] } = paths[feedPath]?.["get"] ?? {}
  const projectId = parameters.find(({ in: place }) => place === "path")
  const query = objectOf(
    parameters.filter(({ name }) => ["after", "types", "ticket"].includes(name)),
  )
  const ofTicket = objectOf(parameters.filter(({ name }) => name === "ticket"))
  const ofWebhooks = tags.find(({ name }) => name === "Notifications")?.description ?? ""
  const ofRealtime =
    "The feed by WebSocket, with the subprotocol `tenure.v1`: frames are texts, each a JSON object."
  const security = Object.keys(components.securitySchemes).map((name) =>
    refTo(`components/securitySchemes/${name}`),
  )
  const printed = {
    asyncapi: "3.0.0",
    info: {
      title: info.title,
      version: info.version,
      description: "The feed of each project, and the notifications of webhooks.",
      license: {
        name: info.license.name,
        url: `https://spdx.org/licenses/${info.license.identifier}.html`,
      },
      contact: info.contact,
    },
    defaultContentType: json,
    servers: { api: server("https", basePath), realtime: server("wss", basePath) },
    channels: {
      feed: channel(
        "feed",
        {
          title: "The feed as Server-Sent Events",
          description,
          address: feedPath,
          servers: [refTo("servers/api")],
          parameters: {
            project_id: {
              description: projectId?.description,
              examples: [String(projectId?.example)],
            },
          },
        },
        inFeed,
      ),
      realtime: channel(
        "realtime",
        {
          title: "The feed by WebSocket",
          description: ofRealtime,
          address: "/v2/realtime",
          servers: [refTo("servers/realtime")],
          bindings: {
            ws: {
              method: "GET",
              query: ofTicket,
              headers: {
                type: "object",
                properties: { "Sec-WebSocket-Protocol": { type: "string", const: "tenure.v1" } },
                required: ["Sec-WebSocket-Protocol"],
              },
              bindingVersion: "0.1.0",
            },
          },
        },
        [...ownFromClient, ...ownToClient],
      ),
      webhook: channel("webhook", { title: "Webhooks", description: ofWebhooks }, toWebhooks),
    },
    operations: {
      feed: {
        ...operation(
          "send",
          "feed",
          {
            summary: "Follow the feed",
            description:
              "With `Accept: text/event-stream`, the response is a stream of events. `id` is the cursor to go on after, on the last event of a page.",
          },
          inFeed,
        ),
        bindings: http("GET", { query }),
        security,
      },
      subscribe: {
        ...operation(
          "receive",
          "realtime",
          { summary: "Subscribe to the feed", description: ofRealtime },
          ownFromClient,
        ),
        security,
      },
      follow: {
        ...operation(
          "send",
          "realtime",
          { summary: "Follow the feed by WebSocket", description: ofRealtime },
          ownToClient,
        ),
        security,
      },
      notify: {
        ...operation(
          "send",
          "webhook",
          { summary: "Notify a webhook", description: ofWebhooks },
          toWebhooks,
        ),
        bindings: http("POST"),
      },
    },
    components: {
      messages,
      schemas: schemasOf([messages, query, ofTicket], components.schemas),
      securitySchemes: components.securitySchemes,
    },
  }
  return JSON.stringify(alone(printed))
}
