/** Values for tests. */

import { type ApiKey, ApiKeyId, digest } from "@tenure/core/ApiKey"
import { EndDate, parse } from "@tenure/core/EndDate"
import * as Event from "@tenure/core/Event"
import { UserId } from "@tenure/core/Membership"
import type { Change } from "@tenure/core/MembershipStore"
import type { Once } from "@tenure/core/Once"
import * as Origin from "@tenure/core/Origin"
import { ProjectId } from "@tenure/core/Project"
import { StoredSecret } from "@tenure/core/StoredSecret"
import { type StoredWebhook, WebhookId } from "@tenure/core/Webhook"
import { secretFromBytes } from "@tenure/core/WebhookSignature"
import * as Predicate from "effect/Predicate"

export const p1 = ProjectId("p1")
export const p2 = ProjectId("p2")
export const u1 = UserId("1001")
export const u2 = UserId("1002")
export const u3 = UserId("1003")

/** Returns the end date of an ISO string. */
export const date = (text: string): EndDate => EndDate(parse(text) ?? NaN)

export const in2027 = date("2027-01-01T00:00:00.000Z")
export const in2028 = date("2028-02-29T12:34:56.789Z")
export const in2029 = date("2029-12-31T23:59:59.999Z")

/** Returns an event of a project, with a new id. */
export const event = (projectId: ProjectId, type = "test.happened"): Event.Event =>
  Event.make({
    id: Event.EventId(crypto.randomUUID()),
    projectId,
    type: Event.EventType(type),
    at: 0,
    data: { project_id: projectId },
  })

/** Returns the draft of the event of a change in a project, with a new id. */
export const draft = (projectId: ProjectId, type = "test.happened"): Event.Draft =>
  Event.draft({
    id: Event.EventId(crypto.randomUUID()),
    projectId,
    type: Event.EventType(type),
    at: 0,
    data: { project_id: projectId },
  })

/** Returns the sequence in the event of a change. */
export const sequenceOf = (changed: Event.Event): number => {
  const data = Event.dataOf(changed)
  return Predicate.hasProperty(data, "sequence") ? Number(data.sequence) : NaN
}

/** The occasion of a change that nobody in particular has asked for. */
export const occasion: Origin.Occasion = { origin: Origin.host, at: 0 }

/** Returns a request with a new idempotency key. */
export const once = (): Once => ({
  owner: "key-1",
  key: crypto.randomUUID(),
  fingerprint: "a request",
})

/** Returns a change in a project, with a new event. */
export const change = (projectId: ProjectId, type?: string): Change => ({
  projectId,
  ...occasion,
  reason: undefined,
  event: draft(projectId, type),
})

/** Returns a webhook of a project, with a new id and secret. */
export const webhook = (projectId: ProjectId): StoredWebhook => {
  const id = WebhookId(crypto.randomUUID())
  return {
    id,
    projectId,
    url: `https://receiver.example/${id}`,
    secret: StoredSecret(secretFromBytes(crypto.getRandomValues(new Uint8Array(32)))),
    previous: undefined,
    signingKey: undefined,
    eventTypes: undefined,
    createdAt: 1234,
    disabledAt: undefined,
  }
}

/** Returns an API key with the given token, which opens the given projects. */
export const apiKey = (token: string, ...projects: ReadonlyArray<ProjectId>): ApiKey => ({
  id: ApiKeyId(crypto.randomUUID()),
  digest: digest(token),
  role: "client",
  name: undefined,
  projects: new Set(projects),
  createdAt: 0,
  expiresAt: undefined,
  revokedAt: undefined,
  lastUsedAt: undefined,
})
