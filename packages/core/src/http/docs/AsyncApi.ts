/** Makes the AsyncAPI 3 document of the events that Tenure sends, from the OpenAPI document. */

import * as Predicate from "effect/Predicate"
import type { Document, Operation, Parameter, Reference, Schema } from "./OpenApi.ts"

const json = "application/json"

const feedPath = "/v2/projects/{project_id}/events"

const refTo = (place: string): Reference => ({ $ref: `#/${place}` })

/** A reference of JSON Schema draft 7 has nothing beside it. */
const alone = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(alone)
  if (!Predicate.isObject(value)) return value
  const { $ref, ...rest } = Object.fromEntries(
    Object.entries(value).map(([name, part]) => [name, alone(part)]),
  )
  if ($ref === undefined) return rest
  return Object.keys(rest).length === 0 ? { $ref } : { ...rest, allOf: [{ $ref }] }
}

const eventId = { type: "string", format: "uuid", description: "The id of the event." }

/** A message with an event, as the feed and webhooks have it. */
interface Event {
  readonly type: string
  readonly when: string
  /** The notification of a webhook: the event without its id, which is in a header. */
  readonly schema: Schema
  readonly example: unknown
  readonly headers: ReadonlyArray<Parameter>
}

const eventsOf = ({ webhooks }: Document): ReadonlyArray<Event> =>
  Object.entries(webhooks).flatMap(([type, { post }]) => {
    const content = post?.requestBody?.content[json]
    return post === undefined || content === undefined
      ? []
      : [
          {
            type,
            when: post.summary,
            schema: content.schema,
            example: content.example,
            headers: post.parameters,
          },
        ]
  })

const objectOf = (parameters: ReadonlyArray<Parameter>): Schema => ({
  type: "object",
  properties: Object.fromEntries(
    parameters.map(({ description, name, schema }) => [name, { ...schema, description }]),
  ),
  required: parameters.flatMap(({ name, required }) => (required ? [name] : [])),
})

const examplesOf = (parameters: ReadonlyArray<Parameter>) =>
  Object.fromEntries(parameters.map(({ example, name }) => [name, example]))

/** The message that the feed has for an event. */
const fed = ({ example, headers, schema, type, when }: Event) => ({
  name: type,
  title: type,
  summary: when,
  contentType: json,
  payload: {
    allOf: [schema, { type: "object", properties: { id: eventId }, required: ["id"] }],
  },
  examples: [
    { payload: { id: headers[0]?.example, ...(Predicate.isObject(example) ? example : {}) } },
  ],
})

/** The request that tells a webhook of an event. */
const notified = ({ example, headers, schema, type, when }: Event) => ({
  name: type,
  title: type,
  summary: when,
  contentType: json,
  headers: objectOf(headers),
  payload: schema,
  examples: [{ headers: examplesOf(headers), payload: example }],
})

/** Tells that the feed cannot go on without a gap. */
const reset = {
  name: "reset",
  title: "reset",
  summary:
    "Events are missing: those after the cursor are not kept any more, or the server has other data. The connection ends. Read anew what you know of the project, and begin without a cursor.",
  contentType: json,
  payload: {
    type: "object",
    properties: { reason: { type: "string", enum: ["cursor_expired"] } },
    required: ["reason"],
  },
  examples: [{ payload: { reason: "cursor_expired" } }],
}

type Messages = Readonly<Record<string, object>>

/** Names the messages of a channel among all. */
const named = (channel: string, messages: ReadonlyArray<readonly [string, object]>): Messages =>
  Object.fromEntries(messages.map(([type, message]) => [`${channel}.${type}`, message]))

const messagesOf = (messages: Messages) =>
  Object.fromEntries(
    Object.keys(messages).map((name) => [name, refTo(`components/messages/${name}`)]),
  )

const refsIn = (value: unknown): ReadonlyArray<string> =>
  Array.from(
    JSON.stringify(value).matchAll(/"#\/components\/schemas\/(\w+)"/g),
    ([, name = ""]) => name,
  )

/** The schemas that a value refers to, and those that they refer to. */
const schemasOf = (value: unknown, schemas: Readonly<Record<string, Schema>>) => {
  const found = new Set(refsIn(value))
  for (const name of found) for (const other of refsIn(schemas[name])) found.add(other)
  return Object.fromEntries(Object.entries(schemas).filter(([name]) => found.has(name)))
}

const send = (
  channel: string,
  { description, summary }: Pick<Operation, "summary" | "description">,
  http: object,
  messages: Messages,
) => ({
  action: "send",
  channel: refTo(`channels/${channel}`),
  summary,
  description,
  bindings: { http: { ...http, bindingVersion: "0.3.0" } },
  messages: Object.keys(messages).map((name) => refTo(`channels/${channel}/messages/${name}`)),
})

/**
 * Makes the document.
 *
 * @param document - the OpenAPI document
 * @param basePath - what precedes `/v2` in every path
 */
export const print = (document: Document, basePath: string): string => {
  const { components, info, paths, tags } = document
  const events = eventsOf(document)
  const inFeed = named("feed", [
    ...events.map((event) => [event.type, fed(event)] as const),
    ["reset", reset],
  ])
  const toWebhooks = named(
    "webhook",
    events.map((event) => [event.type, notified(event)] as const),
  )
  const { description = "", parameters = [] } = paths[feedPath]?.["get"] ?? {}
  const projectId = parameters.find(({ in: place }) => place === "path")
  const query = parameters.filter(({ name }) => name === "after" || name === "types")
  const about = tags.find(({ name }) => name === "Notifications")?.description ?? ""
  const printed = {
    asyncapi: "3.0.0",
    info: {
      title: info.title,
      version: info.version,
      description:
        "What Tenure sends: the feed of each project, and the notifications of webhooks.",
      license: {
        name: info.license.name,
        url: `https://spdx.org/licenses/${info.license.identifier}.html`,
      },
      contact: info.contact,
    },
    defaultContentType: json,
    servers: {
      api: {
        host: "{host}",
        pathname: basePath || "/",
        protocol: "https",
        description: "Where the API is mounted.",
        variables: { host: { default: "localhost", description: "The host, with its port." } },
      },
    },
    channels: {
      feed: {
        address: feedPath,
        title: "The feed as Server-Sent Events",
        description,
        servers: [refTo("servers/api")],
        parameters: {
          project_id: {
            description: projectId?.description,
            examples: [String(projectId?.example)],
          },
        },
        messages: messagesOf(inFeed),
      },
      webhook: {
        title: "Webhooks",
        description: about,
        messages: messagesOf(toWebhooks),
      },
    },
    operations: {
      feed: {
        ...send(
          "feed",
          {
            summary: "Follow the feed",
            description:
              "With `Accept: text/event-stream`, the response is a stream of events. `id` is the cursor to go on after, on the last event of a page.",
          },
          { method: "GET", query: objectOf(query) },
          inFeed,
        ),
        security: Object.keys(components.securitySchemes).map((name) =>
          refTo(`components/securitySchemes/${name}`),
        ),
      },
      notify: send(
        "webhook",
        { summary: "Notify a webhook", description: about },
        { method: "POST" },
        toWebhooks,
      ),
    },
    components: {
      messages: { ...inFeed, ...toWebhooks },
      schemas: schemasOf([inFeed, toWebhooks, query], components.schemas),
      securitySchemes: components.securitySchemes,
    },
  }
  return JSON.stringify(alone(printed))
}
