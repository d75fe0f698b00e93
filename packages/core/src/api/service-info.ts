/** The operations that tell how Tenure is doing, and those that show how the API is called. */

import { input } from "../base/operation-input.ts"
import { type Route, declareOperations, plain } from "./declaration.ts"
import type { ActivityCell, Instant, Int, Uuid } from "./types.ts"
import type { WebhookHealth } from "./webhooks.ts"

interface WebhookNeedingAttention extends Pick<WebhookHealth, "last_attempt" | "waiting"> {
  /**
   * The id of the project.
   * @example "demo"
   */
  readonly project_id: string
  /** The id of the webhook. */
  readonly id: Uuid
  /**
   * The host of its URL, with the port if that is not the usual one.
   * @example "receiver.example"
   */
  readonly url_host: string
  /**
   * What the webhook is for; null if nobody said.
   * @example null
   */
  readonly description: string | null
  /**
   * Whether nothing can be signed, the latest attempts have failed, or nothing is sent until somebody enables it.
   */
  readonly reason: "unreadable_secret" | "failing" | "disabled"
  /** When the first of the attempts failed, or it was disabled. */
  readonly since: Instant
}

export interface Status {
  readonly versions: {
    /** @example "1.0.0" */
    readonly tenure: string
    readonly api: "v2"
  }
  readonly stores: {
    /**
     * Whether the store answers and takes changes.
     * @example true
     */
    readonly memberships: boolean
    /**
     * Whether the store answers and takes changes.
     * @example true
     */
    readonly webhooks: boolean
    /**
     * Whether the store answers and takes changes.
     * @example true
     */
    readonly api_keys: boolean
    /**
     * Whether the store answers and takes changes.
     * @example true
     */
    readonly deliveries: boolean
    /**
     * Whether the store answers and takes changes.
     * @example true
     */
    readonly rate_limits: boolean
  }
  /** What is left to deliver; null if the store does not answer. */
  readonly backlog: {
    /**
     * The deliveries that wait for an attempt, or for the result of one, up to 10,000, which stands for as many or more.
     * @minimum 0
     * @maximum 10000
     * @example 0
     */
    readonly waiting: Int
    /**
     * For how many milliseconds the oldest due delivery has been due; null if none is. It is looked for among the first
     * 10,000 webhooks with due deliveries.
     * @example null
     */
    readonly due_for_ms: Int | null
    /**
     * For how many milliseconds the oldest of them has waited for nothing but a server that sends it; null if none does.
     * It does not grow because receivers fail, are slow or have a rate.
     * @example null
     */
    readonly late_for_ms: Int | null
  } | null
  /**
   * The deliveries that were given up, are kept and can be replayed, up to 10,000, which stands for as many or more; null
   * if the store does not answer.
   * @minimum 0
   * @maximum 10000
   * @example 0
   */
  readonly failed_deliveries: Int | null
  /**
   * The webhooks that are disabled, up to 10,000, which stands for as many or more; null if the store does not answer.
   * @minimum 0
   * @maximum 10000
   * @example 0
   */
  readonly disabled_webhooks: Int | null
  /**
   * Up to 50 webhooks of all projects: failing ones by how long they fail, then disabled ones, the latest first; among
   * these, unreadable secrets first. null if the store does not answer.
   * @example []
   */
  readonly webhooks_needing_attention: ReadonlyArray<WebhookNeedingAttention> | null
  /**
   * How the server that answers limits requests: by the store, or, because the store does not answer or has failed in the
   * last 10 seconds, by itself alone, not at all, or by answering all 503.
   * @example "store"
   */
  readonly rate_limiting: "store" | "local" | "open" | "closed"
  /**
   * The ids of the API keys that the server which answers has suspended.
   * @example []
   */
  readonly suspended_keys: ReadonlyArray<string>
  /**
   * The ids of the encryption keys that stored secrets need, but which the answering server lacks or has with another
   * value: nothing is sent to their webhooks. They are those of up to 20 seconds ago; null if the store does not answer.
   * @example []
   */
  readonly missing_encryption_keys: ReadonlyArray<string> | null
}

export interface Activity {
  /** Sixty minutes, oldest first; the last one goes on. */
  readonly minutes: ReadonlyArray<
    ActivityCell & {
      /**
       * Requests that this server refused by a rate limit.
       * @example 0
       */
      readonly refused: Int
    }
  >
  /** Who was refused, most often first. In each minute, a hundred keys are told from others. */
  readonly refusals: ReadonlyArray<{
    /** The id of the API key; null for requests without a valid key, and for those of further keys. */
    readonly key_id: string | null
    /** @example 0 */
    readonly refused: Int
  }>
}

/**
 * Status
 *
 * How the server is doing, for its operators.
 */
export const statusOperations = declareOperations({
  /**
   * Get the status
   *
   * Returns how the server and its stores are doing. Needs a key that opens all projects.
   */
  get: {
    method: "GET",
    pattern: "/v2/status",
    role: "admin",
    input: input({}, {}),
    reply: plain<Status>("The status of this server."),
    errors: [],
  },
  /**
   * Get the last hour
   *
   * Returns how many attempts to deliver succeeded and failed on all servers, and how many requests the server that answers
   * refused, by the minute. Attempts that another server made may be missing for up to 10 seconds. Needs a key that opens
   * all projects.
   */
  activity: {
    method: "GET",
    pattern: "/v2/status/activity",
    role: "admin",
    input: input({}, {}),
    reply: plain<Activity>("What was delivered in the last hour, and what this server refused."),
    errors: [],
  },
})

/**
 * Documentation
 *
 * How the API is called.
 */
export const docsOperations = {
  /**
   * Get the OpenAPI document
   *
   * Returns this document, without an envelope.
   */
  document: { method: "GET", pattern: "/v2/openapi.json", role: "none" },
  /**
   * Get the AsyncAPI document
   *
   * Returns what the feed and webhooks send, without an envelope.
   */
  asyncDocument: { method: "GET", pattern: "/v2/asyncapi.json", role: "none" },
  /**
   * Read the documentation
   *
   * Returns this document as a page to read.
   */
  page: { method: "GET", pattern: "/v2/docs", role: "none" },
} as const satisfies Readonly<Record<string, Route>>
