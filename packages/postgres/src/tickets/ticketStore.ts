/** Tickets on PostgreSQL. */

import { TicketLimitReached } from "@tenure/core/Ticket"
import type { TicketStore } from "@tenure/core/TicketStore"
import * as Effect from "effect/Effect"
import type { Executor } from "../connection/Executor.ts"
import { regularly } from "../connection/housekeeping.ts"
import { text } from "../connection/parameters.ts"
import { addTicket, addTicketParams } from "./addTicket.sql.ts"
import { forgetTickets } from "./forgetTickets.sql.ts"
import { takeTicket, type TicketRow, toTicket } from "./takeTicket.sql.ts"

const manner = { owner: "tickets" }

/** Makes the store, and starts to delete what has expired. */
export const make = Effect.fnUntraced(function* ({ executeApart, schema }: Executor) {
  const sql = { add: addTicket(schema), take: takeTicket(schema) }
  yield* regularly("1 minute", executeApart(forgetTickets(schema), [], manner))

  const store: TicketStore["Service"] = {
    add: Effect.fnUntraced(function* (ticket, bounds) {
      const rows = yield* executeApart(sql.add, addTicketParams(ticket, bounds), manner)
      if (rows.length === 0) return yield* new TicketLimitReached({ keyId: ticket.keyId })
    }),

    take: Effect.fnUntraced(function* (digest) {
      const [row] = yield* executeApart<TicketRow>(sql.take, [text(digest)], manner)
      return row?.is_alive === true ? toTicket(row) : undefined
    }),
  }
  return store
})
