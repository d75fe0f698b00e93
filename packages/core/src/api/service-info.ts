/** Operations on Tenure's own state and on the API's documentation. */

import { input } from "../base/operation-input.ts"
import { type Route, declareOperations, plain } from "./declaration.ts"
import type { ActivityCell, Instant, Int, Uuid } from "./types.ts"
import type { WebhookHealth } from "./webhooks.ts"

interface WebhookNeedingAttention extends Pick<WebhookHealth, "last_attempt" | "waiting"> {
  /**
   * The project's id.
   * @example "demo"
   */
  readonly project_id: string
  /** The webhook's id. */
  readonly id: Uuid
  /**
   * The host in its URL, with the port unless it is the usual one.
   * @example "receiver.example"
   */
  readonly url_host: string
  /**
   * The webhook's purpose; null if none was given.
   * @example null
   */
  readonly description: string | null
  /**
   * Whether nothing can be signed, the latest attempts have failed, or nothing is sent until somebody enables it.
   */
  readonly reason: "unreadable_secret" | "failing" | "disabled"
  /** When the first attempt failed, or the webhook was disabled. */
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
  /** Pending deliveries; null if the store does not answer. */
  readonly backlog: {
    /**
     * Deliveries waiting for an attempt or its result, up to 10,000; 10,000 stands for as many or more.
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
     * The time in milliseconds that the oldest delivery has waited only for a server to send it; null
     * if none does. It does not grow because receivers fail, are slow or have a rate.
     * @example null
     */
    readonly late_for_ms: Int | null
  } | null
  /**
   * Failed deliveries, kept for replays, up to 10,000; 10,000 stands for as many or more; null if the
   * store does not answer.
   * @minimum 0
   * @maximum 10000
   * @example 0
   */
  readonly failed_deliveries: Int | null
  /**
   * Disabled webhooks, up to 10,000; 10,000 stands for as many or more; null if the store does not
   * answer.
   * @minimum 0
   * @maximum 10000
   * @example 0
   */
  readonly disabled_webhooks: Int | null
  /**
   * Up to 50 webhooks in all projects: failing ones by how long they fail, then disabled ones, the
   * latest first; among these, unreadable secrets first. null if the store does not answer.
   * @example []
   */
  readonly webhooks_needing_attention: ReadonlyArray<WebhookNeedingAttention> | null
  /**
   * How the answering server limits requests: by the store, or, because the store does not answer or
   * has failed in the last 10 seconds, by itself alone, not at all, or by answering all 503.
   * @example "store"
   */
  readonly rate_limiting: "store" | "local" | "open" | "closed"
  /**
   * The ids of API keys suspended by the answering server.
   * @example []
   */
  readonly suspended_keys: ReadonlyArray<string>
  /**
   * The ids of encryption keys needed by stored secrets, but missing on the answering server or
   * different there: nothing is sent to their webhooks. The list may be up to 20 seconds old; null if
   * the store does not answer.
   * @example []
   */
  readonly missing_encryption_keys: ReadonlyArray<string> | null
}

export interface Activity {
  /** Sixty minutes, oldest first; the last one goes on. */
  readonly minutes: ReadonlyArray<
    ActivityCell & {
      /**
       * Requests this server refused by a rate limit.
       * @example 0
       */
      readonly refused: Int
    }
  >
  /** Refusals by API key, most often refused first. In each minute, a hundred keys are counted separately. */
  readonly refusals: ReadonlyArray<{
    /** The API key's id; null for requests without a valid key, and for further keys. */
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
   * Returns the state of the server and its stores. Needs a key with all projects in its scope.
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
   * Returns the successful and failed delivery attempts on all servers, and the answering server's
   * refused requests, by the minute. Another server's attempts may be missing for up to 10 seconds.
   * Needs a key with all projects in its scope.
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
   * Describes the messages from the feed and webhooks, without an envelope.
   */
  asyncDocument: { method: "GET", pattern: "/v2/asyncapi.json", role: "none" },
  /**
   * Read the documentation
   *
   * Returns this document as a page to read.
   */
  page: { method: "GET", pattern: "/v2/docs", role: "none" },
} as const satisfies Readonly<Record<string, Route>>
