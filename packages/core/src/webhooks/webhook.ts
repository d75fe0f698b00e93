/** Webhooks: endpoints for a project's events. */

import type { Branded } from "effect/Brand"
import { TaggedError } from "../base/tagged-error.ts"
import { type ProjectId, brandedWhere, isUuid } from "../base/values.ts"
import type { EventType } from "../events/event.ts"
import type { StoredSecret } from "./secrets.ts"
import type { SigningKey, WebhookSecret } from "./signature.ts"

/** A webhook's id: a lower-case UUID. */
export type WebhookId = Branded<string, "@tenure/core/WebhookId">

/** Brands text as a webhook id. Throws a `TypeError` if it is not a UUID in lower case. */
export const WebhookId = brandedWhere<string, WebhookId>(
  "webhook id",
  "a UUID in lower case",
  isUuid,
)

/** Who disables webhooks: the dispatcher, because attempts have failed, or an operator, by request. */
const disablers = ["failures", "request"] as const

/** Since when a webhook is disabled, and by whom. */
export interface Disabling {
  /** When it was disabled, in milliseconds since the epoch. */
  readonly at: number
  /** Its deliveries fail if it was disabled because of failures, and wait if somebody asked for it. */
  readonly by: (typeof disablers)[number]
}

/** A webhook with secrets in type `S` and signing keys in type `K`. */
interface WebhookWith<S extends string, K extends string> {
  /** The id of the webhook. */
  readonly id: WebhookId
  /** The id of its project. */
  readonly projectId: ProjectId
  /** Where notifications are sent. */
  readonly url: string
  /** What receivers verify notifications with. */
  readonly secret: S
  /** The secret before the last rotation, while it also signs. */
  readonly previous:
    | {
        /** The secret. */
        readonly secret: S
        /** Until when it also signs, in milliseconds since the epoch. */
        readonly until: number
      }
    | undefined
  /** The key to sign with in addition to the secret, if one was added. */
  readonly signingKey: K | undefined
  /** The event types to send; `undefined` for all. */
  readonly eventTypes: ReadonlyArray<EventType> | undefined
  /**
   * Whether a member's events are sent one after another: none is attempted before the earlier ones were delivered or
   * given up.
   */
  readonly ordered: boolean
  /** How many attempts start in a second at most, on average; `undefined` without a limit. */
  readonly rate: number | undefined
  /** Its purpose, as an operator describes it; `undefined` without a description. */
  readonly description: string | undefined
  /** When it was created, in milliseconds since the epoch. */
  readonly createdAt: number
  /** Since when it is disabled; nothing is sent while it is. `undefined` while it is enabled. */
  readonly disabled: Disabling | undefined
}

/** A webhook with its secrets in plain text. */
export interface Webhook extends WebhookWith<WebhookSecret, SigningKey> {
  /** The names of its own request headers, in lower case and in order. Nothing shows their values. */
  readonly headerNames: ReadonlyArray<string>
}

/** A webhook with its readable secrets. */
export interface ShownWebhook extends Omit<Webhook, "secret"> {
  /** What receivers verify notifications with; `undefined` if it is unreadable. */
  readonly secret: WebhookSecret | undefined
  /** Why a secret is unreadable; `undefined` if all are readable. */
  readonly problem: string | undefined
}

/** A webhook without its secrets. */
export interface PublicWebhook extends Omit<Webhook, "secret" | "previous" | "signingKey"> {}

/** A webhook's own request headers as stores keep them. */
export interface StoredHeaders {
  /** The names, in lower case and in order. */
  readonly names: ReadonlyArray<string>
  /** The names and values, which may be encrypted. */
  readonly sealed: StoredSecret
}

/** A webhook as stores keep it: its secrets may be encrypted. */
export interface StoredWebhook extends WebhookWith<StoredSecret, StoredSecret> {
  readonly headers: StoredHeaders | undefined
}

/** How the attempts for a webhook have gone since one succeeded. */
export interface Health {
  /** The number of consecutive failed attempts. */
  readonly failures: number
  /** When the first failed, in milliseconds since the epoch. */
  readonly failingSince: number | undefined
}

/** The shares of `disableAfter`, in percent, that `webhook.failing` announces. The last one disables the webhook. */
export const failingPercents = [50, 90, 100] as const

/** A share of `disableAfter`, in percent. */
export type FailingPercent = (typeof failingPercents)[number]

/** The webhook has other settings than expected, or does not exist any more. */
export class WebhookConflict extends TaggedError("WebhookConflict") {}

/** The project has no such webhook. */
export class WebhookNotFound extends TaggedError("WebhookNotFound")<{
  /** The id that no webhook has. */
  readonly webhookId: string
}> {
  override get message(): string {
    return `There is no webhook "${this.webhookId}".`
  }
}

/** The webhook is disabled, so nothing can be sent to it. */
export class WebhookDisabled extends TaggedError("WebhookDisabled")<{
  /** The id of the webhook. */
  readonly webhookId: string
}> {
  override get message(): string {
    return `The webhook "${this.webhookId}" is disabled.`
  }
}

/** The project has the maximum number of webhooks. */
export class WebhookLimitReached extends TaggedError("WebhookLimitReached")<{
  /** The maximum. */
  readonly limit: number
}> {
  override get message(): string {
    return `A project has ${this.limit} webhooks at most.`
  }
}
