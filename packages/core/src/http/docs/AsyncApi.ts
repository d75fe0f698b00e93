/** Makes the AsyncAPI 3 document of the messages that Tenure exchanges, from the OpenAPI document. */

import * as Predicate from "effect/Predicate"
import * as Messages from "./AsyncMessages.ts"
import type { Document, Operation, Reference, Schema } from "./OpenApi.ts"

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

const keyOf = (channel: string, { name }: Messages.Message): string => `${channel}.${name}`

/** A channel, without its messages. */
interface Channel {
  readonly title: string
  readonly description: string
  readonly address?: string
  readonly servers?: ReadonlyArray<Reference>
  readonly parameters?: object
  readonly bindings?: object
}

const channel = (name: string, about: Channel, messages: ReadonlyArray<Messages.Message>) => ({
  ...about,
  messages: Object.fromEntries(
    messages.map((message) => [message.name, refTo(`components/messages/${keyOf(name, message)}`)]),
  ),
})

/** What Tenure does with messages of a channel. */
const operation = (
  action: "receive" | "send",
  on: string,
  about: Pick<Operation, "description" | "summary">,
  messages: ReadonlyArray<Messages.Message>,
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

/** The schemas that a value refers to, and those that they refer to. */
const schemasOf = (value: unknown, schemas: Readonly<Record<string, Schema>>) => {
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
 * @param basePath - what precedes `/v2` in every path
 */
export const print = (document: Document, basePath: string): string => {
  const { components, info, paths, tags } = document
  const toWebhooks = Messages.notifications(document)
  const events = toWebhooks.map(Messages.fed)
  const inFeed = [...events, Messages.reset]
  const toClient = Messages.toClient(events)
  const { fromClient } = Messages
  const messages = Object.fromEntries(
    Object.entries({
      feed: inFeed,
      realtime: [...fromClient, ...toClient],
      webhook: toWebhooks,
    }).flatMap(([name, all]) => all.map((message) => [keyOf(name, message), message] as const)),
  )
  const { description = "", parameters = [] } = paths[feedPath]?.["get"] ?? {}
  const projectId = parameters.find(({ in: place }) => place === "path")
  const query = Messages.objectOf(
    parameters.filter(({ name }) => ["after", "types", "ticket"].includes(name)),
  )
  const ofTicket = Messages.objectOf(parameters.filter(({ name }) => name === "ticket"))
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
    defaultContentType: Messages.json,
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
        [...fromClient, ...toClient],
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
          fromClient,
        ),
        security,
      },
      follow: {
        ...operation(
          "send",
          "realtime",
          { summary: "Follow the feed by WebSocket", description: ofRealtime },
          toClient,
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
