/** The requests that tell webhooks of events. */

import type { Operation, Parameter, PathItem } from "../docs/OpenApi.ts"
import type * as Events from "./Events.ts"
import * as Example from "./Example.ts"
import * as Fields from "./Fields.ts"
import { refTo, type Schemas } from "./Simplified.ts"

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

/** The group of the requests to webhooks. */
export const tagOfNotifications = "Notifications"

/** The request that tells a webhook of an event. */
export const webhookOf = (
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
      content: { "application/json": { schema, example: Example.make(schemas, true)(schema) } },
    },
    responses: {
      "2XX": { description: "The event was received." },
      "410": { description: "The webhook is disabled, and gets no further events." },
      default: { description: "The event is sent again later." },
    },
  }
  return [type, { post }]
}
