/**
 * A host that records a payment and extends a membership in one transaction, and ends by SIGKILL at one
 * of its steps: `node payer.ts URL SEED`.
 */

import { setTimeout as sleep } from "node:timers/promises"
import { createTenure } from "@tenure/core"
import { postgres } from "@tenure/postgres"
import pg from "pg"
import { random } from "../random.ts"
import { endDate, invoiceOf, member, nameOf } from "./payments.ts"

const [, , url = "", seed = ""] = process.argv
const choose = random("payer", seed)
// Half the hosts end while they commit, the fifth step.
const steps = { done: 0, last: Math.min(4, choose.below(8)) }

// From before the last step's statement arrives until after it is answered.
const maxMillis = 6

/** Sends a statement, and waits for its answer unless it is the last one. */
const step = async (send: () => Promise<unknown>): Promise<void> => {
  const isLast = steps.done++ === steps.last
  const answered = send()
  if (isLast) {
    await sleep(choose.between(0, maxMillis))
    process.kill(process.pid, "SIGKILL")
  }
  await answered
}

const tenure = await createTenure({
  stores: postgres({ url, maxConnections: 2 }),
  webhooks: { dispatch: false },
})
const client = new pg.Client({ connectionString: url, application_name: nameOf(seed) })
await client.connect()

const invoice = invoiceOf(seed)
await step(() => client.query("BEGIN"))
await step(() => client.query("INSERT INTO payments (invoice) VALUES ($1)", [invoice]))
const { events, memberships } = tenure.within(client)
await step(() => memberships.extend({ ...member(seed), endDate, reason: invoice }))
await step(() =>
  events.publish({ ...member(seed), type: "payment.completed", data: { reason: invoice } }),
)
await step(() => client.query("COMMIT"))
