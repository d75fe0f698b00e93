/** The messages of the AsyncAPI document. */

import * as Predicate from "effect/Predicate"
import type { Document, Parameter, Schema } from "./OpenApi.ts"

/** A message object of AsyncAPI. */
export interface Message {
  readonly name: string
  readonly title: string
  readonly summary: string
  readonly contentType: string
  readonly headers?: Schema
  readonly payload: Schema
  readonly examples: ReadonlyArray<{ readonly payload: unknown; readonly headers?: unknown }>
}

/** The media type of every message. */
export const json = "application/json"

/** Returns the schema of an object with some of the parameters of an operation. */
export const objectOf = (parameters: ReadonlyArray<Parameter>): Schema => ({
  type: "object",
  properties: Object.fromEntries(
    parameters.map(({ description, name, schema }) => [name, { ...schema, description }]),
  ),
  required: parameters.flatMap(({ name, required }) => (required ? [name] : [])),
})

const examplesOf = (parameters: ReadonlyArray<Parameter>) =>
  Object.fromEntries(parameters.map(({ example, name }) => [name, example]))

/** Returns the requests that tell webhooks of events. */
export const notifications = ({ webhooks }: Document): ReadonlyArray<Message> =>
  Object.entries(webhooks).flatMap(([name, { post }]) => {
    const content = post?.requestBody?.content[json]
    if (post === undefined || content === undefined) return []
    const { parameters, summary } = post
    const { example, schema } = content
    const headers = objectOf(parameters)
    const examples = [{ headers: examplesOf(parameters), payload: example }]
    return [{ name, title: name, summary, contentType: json, headers, payload: schema, examples }]
  })

const eventId: Schema = { type: "string", format: "uuid", description: "The id of the event." }

const exampleId = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"

/** Returns the message that the feed has for the event of a notification: its id is within. */
export const fed = ({ examples, name, payload, summary, title }: Message): Message => ({
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

const reason: Schema = {
  type: "string",
  enum: ["cursor_expired"],
  description: "Why: those after the cursor are not kept any more, or the server has other data.",
}

/** Tells a stream of events that it cannot go on without a gap. */
export const reset: Message = {
  name: "reset",
  title: "reset",
  summary:
    "Events are missing, and the stream ends. Read anew what you know of the project, and begin without a cursor.",
  contentType: json,
  payload: { type: "object", properties: { reason }, required: ["reason"] },
  examples: [{ payload: { reason: "cursor_expired" } }],
}

/** Makes the message of a frame, which has a type of its own. */
const frame = (
  name: string,
  summary: string,
  required: Readonly<Record<string, Schema>>,
  optional: Readonly<Record<string, Schema>>,
  example: object,
): Message => ({
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

const text = (description: string): Schema => ({ type: "string", description })

const cursor = text("The place after all events that came before it: begin after it the next time.")

/** The frames that a client sends. */
export const fromClient: ReadonlyArray<Message> = [
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
 * Returns the frames that a client gets.
 *
 * @param events - the messages that the feed has
 */
export const toClient = (events: ReadonlyArray<Message>): ReadonlyArray<Message> => [
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
