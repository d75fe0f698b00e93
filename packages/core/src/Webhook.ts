/** Webhooks: where a project's events are sent. */

import type { Branded } from "effect/Brand"
import * as Data from "effect/Data"
import type { EventType } from "./Event.ts"
import { refined } from "./internal/refined.ts"
import { isUuid } from "./internal/uuid.ts"
import type { ProjectId } from "./Project.ts"
import type { Secret, SigningKey } from "./WebhookSignature.ts"

/** Identifier of a webhook: a UUID in lower case. */
export type WebhookId = Branded<string, "@tenure/core/WebhookId">

/** Brands a text as a webhook id. Throws where it is none. */
export const WebhookId = refined<string, WebhookId>("webhook id", isUuid)

/** A webhook as stored. */
export interface Webhook {
  readonly id: WebhookId
  readonly projectId: ProjectId
  readonly url: string
  readonly secret: Secret
  /** The secret before the last rotation, which signs as well until that instant. */
  readonly previous: { readonly secret: Secret; readonly until: number } | undefined
  /** The key that signs besides the secret, where one was asked for. */
  readonly signingKey: SigningKey | undefined
  /** The types of events that it gets; `undefined` for all. */
  readonly eventTypes: ReadonlyArray<EventType> | undefined
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  /** When the receiver said for good that it is gone (410); nothing is sent from then on. */
  readonly disabledAt: number | undefined
}

/** The project has no such webhook. */
export class WebhookNotFound extends Data.TaggedError("WebhookNotFound")<{
  readonly webhookId: string
}> {
  override get message(): string {
    return `There is no webhook "${this.webhookId}".`
  }
}

/** The webhook is disabled: nothing is sent to it. */
export class WebhookDisabled extends Data.TaggedError("WebhookDisabled")<{
  readonly webhookId: string
}> {
  override get message(): string {
    return `The webhook "${this.webhookId}" is disabled.`
  }
}

/** The project has as many webhooks as it may have. */
export class WebhookLimitReached extends Data.TaggedError("WebhookLimitReached")<{
  readonly limit: number
}> {
  override get message(): string {
    return `A project has ${this.limit} webhooks at most.`
  }
}

/** The URL cannot be a webhook's; the message says why. */
export class InvalidWebhookUrl extends Data.TaggedError("InvalidWebhookUrl")<{
  readonly message: string
}> {}
