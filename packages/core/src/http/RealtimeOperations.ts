/** The operations for connections that stay open. */

import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Setting from "../base/Setting.ts"
import { Tickets } from "../keys/Tickets.ts"
import type { ApiError } from "./ApiError.ts"
import { bodyOf, opens, type OperationsOn, timeOf } from "./Operation.ts"
import * as Query from "./Query.ts"

const mostProjects = 100

const isProjects = (given: unknown): boolean =>
  given === "all" ||
  (Array.isArray(given) &&
    given.length >= 1 &&
    given.length <= mostProjects &&
    given.every(Predicate.isString))

const ticketBody = Setting.struct({
  projects: Setting.checked<ReadonlyArray<string> | "all">(
    `an array of 1 to ${mostProjects} project ids, or "all"`,
    isProjects,
  ),
})

// As long as a ticket lives: by then, there is room.
const tooManyTickets: Effect.Effect<never, ApiError> = Effect.fail({
  _tag: "RateLimited",
  retryAfter: 60,
})

/**
 * Makes the operations.
 *
 * @param maxBodyBytes - the longest request body, in bytes
 */
export const make = Effect.fnUntraced(function* (maxBodyBytes: number) {
  const tickets = yield* Tickets

  return {
    // A repetition with an idempotency key gets another ticket: none can be shown again.
    "realtime.issueTicket": Effect.fnUntraced(function* (call) {
      yield* Query.read(call.request, {})
      const { projects } = yield* Setting.read(ticketBody, yield* bodyOf(call, maxBodyBytes))
      if (projects !== "all" && !projects.every((id) => opens(call.principal, id))) {
        return yield* Effect.fail<ApiError>({ _tag: "ProjectNotFound" })
      }
      const { expiresAt, ticket } = yield* Effect.catchTag(
        tickets.issue(call.principal, projects === "all" ? projects : new Set(projects)),
        "TicketLimitReached",
        () => tooManyTickets,
      )
      return {
        message: "The ticket was issued. It can be used once.",
        data: { ticket, expires_at: timeOf(expiresAt) },
      }
    }),
  } satisfies OperationsOn<"realtime">
})
