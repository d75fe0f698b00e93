/** The fields in arguments to the methods on webhooks and events. */

import { type MethodFields, originFields as origin } from "../base/field-names.ts"
import type { Events } from "./published-events.ts"
import type { Webhooks } from "./webhooks.ts"

const project = { projectId: true }
const webhook = { ...project, webhookId: true }
const repeatable = { ...webhook, idempotencyKey: true }

const settings = {
  url: true,
  eventTypes: "types",
  ordered: true,
  rate: true,
  description: true,
  headers: true,
}

const replaying = { ...repeatable, since: true, types: "event_types", only: true, dryRun: true }

const methods: MethodFields<Webhooks["Service"]> = {
  create: [{ ...project, ...settings, idempotencyKey: true }, origin],
  list: [project],
  health: [project],
  find: [webhook],
  update: [
    {
      ...repeatable,
      ...settings,
      disabled: ["enabled", '"disabled", with the opposite value'],
    },
    origin,
  ],
  delete: [repeatable, origin],
  rotateSecret: [{ ...repeatable, keepOldFor: true }, origin],
  addSigningKey: [webhook, origin],
  enable: [repeatable, origin],
  ping: [repeatable],
  activity: [webhook],
  projectActivity: [project],
  deliveries: [
    {
      ...webhook,
      order: true,
      attemptedBefore: true,
      state: true,
      olderThan: "after",
      limit: true,
    },
  ],
  replay: [{ ...repeatable, eventId: true }],
  replayMany: [replaying],
  replayPage: [{ ...replaying, after: true }],
}

const readers = new Set(["find", "activity", "deliveries"])

const ofWebhook = new Set([...Object.keys(settings), "disabled"])

/** The fields for webhooks, by method. A returned webhook or delivery can be passed to another method. */
export const webhookFields = {
  methods,
  ignores: (place: string, field: string, given: object) =>
    (ofWebhook.has(field) && (readers.has(place) || Object.hasOwn(given, "createdAt"))) ||
    (field === "state" && Object.hasOwn(given, "attempts")),
}

/** The fields for events, by method. */
export const eventFields: { readonly methods: MethodFields<Events["Service"]> } = {
  methods: {
    // Events and deliveries that were returned have a type, too.
    publish: [{ ...project, type: false, data: true, traceparent: false, idempotencyKey: true }],
    find: [{ ...project, eventId: true }],
  },
}
