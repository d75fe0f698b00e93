/** Operations for long-lived connections. */

import * as Predicate from "effect/Predicate"
import { input } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import { declareOperations, plain } from "./declaration.ts"
import type { Instant } from "./types.ts"

export interface Ticket {
  /** @example "tkt_jVQ0dYqN0zv2mXxq0T5yq3yq9mGmQXoVxKf3mS1b7aE" */
  readonly ticket: string
  readonly expires_at: Instant
}

const maxProjects = 100

const isProjects = (given: unknown): boolean =>
  given === "all" ||
  (Array.isArray(given) &&
    given.length >= 1 &&
    given.length <= maxProjects &&
    given.every(Predicate.isString))

/** A ticket to issue. */
const newTicket = input(
  {},
  {
    /**
     * Ids of the projects with feeds in the ticket's scope; `all` for the key's projects.
     * @example ["demo"]
     */
    projects: Setting.inJson(
      Setting.guarded<ReadonlyArray<string> | "all">(
        `an array of 1 to ${maxProjects} project ids, or "all"`,
        isProjects,
      ),
      {
        anyOf: [
          { enum: ["all"] },
          { type: "array", items: { type: "string" }, minItems: 1, maxItems: maxProjects },
        ],
      },
    ),
  },
)

/**
 * Real time
 *
 * The feed as it happens.
 */
export const realtimeOperations = declareOperations({
  /**
   * Issue a ticket
   *
   * Issues a ticket for a browser, because a browser cannot send the key: within 60 seconds, it opens
   * one connection to follow the feed.
   */
  issueTicket: {
    method: "POST",
    pattern: "/v2/realtime/tickets",
    role: "client",
    changesNothing: true,
    input: newTicket,
    reply: plain<Ticket>("The ticket was issued. It can be used once."),
    errors: ["ProjectNotFound"],
  },
})
