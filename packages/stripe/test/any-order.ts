/** What happens at Stripe, and its events in any order, however often each comes. */

import { testTenure } from "@tenure/testing"
import fc from "fast-check"
import { expect, onTestFinished } from "vitest"
import { stripeWebhook } from "../src/index.ts"
import { day, now, period, seconds, start } from "./set-up.ts"
import { type SentEvent, secret, startStripeAccount } from "./stripe-account.ts"

/** An invoice. After some more invoices, its money may go back, and then come back. */
const invoices = fc.record({
  months: fc.integer({ min: 1, max: 3 }),
  refundedAfter: fc.option(fc.nat(3)),
  isDispute: fc.boolean(),
  isRestored: fc.boolean(),
  /** Whether the bank decides on a dispute. */
  isDecided: fc.boolean(),
})

const histories = fc.record({
  invoices: fc.array(invoices, { minLength: 1, maxLength: 4 }),
  canceledOn: fc.option(fc.integer({ min: 1, max: 200 })),
  graceDays: fc.constantFrom(0, 1, 3),
  cancellation: fc.constantFrom("periodEnd", "now"),
  disputes: fc.constantFrom("shorten", "pause"),
  /** How often each event is sent as soon as it happens, and how often after everything has. */
  early: fc.array(fc.constantFrom(0, 1, 1, 2), { minLength: 13, maxLength: 13 }),
  late: fc.array(fc.constantFrom(0, 0, 0, 1), { minLength: 13, maxLength: 13 }),
  order: fc.array(fc.nat(), { minLength: 26, maxLength: 26 }),
  isConcurrent: fc.boolean(),
  /** How slow Stripe's answers are, and how much time passes between what happens there. */
  delays: fc.array(fc.constantFrom(0, 0, 2, 12), { minLength: 7, maxLength: 7 }),
})

const pass = (milliseconds = 0) =>
  new Promise<void>((resolve) => void setTimeout(resolve, milliseconds))

/** Expects that they lead to the same end date, while more happens at Stripe. */
export const expectSameEndDate = async (numRuns: number): Promise<void> => {
  const on = await startStripeAccount()
  const { close, tenure } = await testTenure({ start })
  onTestFinished(async () => {
    await close()
    await on.close()
  })
  await tenure.memberships.createProject("p1")
  let runs = 0
  await fc.assert(
    fc.asyncProperty(histories, async (history) => {
      const { canceledOn, cancellation, disputes, early, graceDays, isConcurrent, late, order } =
        history
      const id = String(++runs)
      let answers = 0
      on.beforeAnswer(() => pass(history.delays[++answers % history.delays.length]))
      const options = { graceDays, cancellation, disputes }
      const webhook = stripeWebhook({ tenure, stripe: on.stripe, secret, ...options })
      on.subscribe(id, `cus_${id}`, { project_id: "p1", user_id: id })

      let end = 0
      const periods = history.invoices.map(({ months, ...rest }, index) => {
        const from = end
        end += 30 * months
        return { invoice: `in_${id}_${index}`, from, to: end, index, ...rest }
      })
      // What happens, in order.
      const happening = periods
        .flatMap(({ index, invoice, isDecided, isDispute, isRestored, refundedAfter, ...days }) => {
          const paid = { at: index, run: () => on.pay(id, invoice, period(days.from, days.to)) }
          if (refundedAfter === null) return [paid]
          const [take, giveBack] = isDispute
            ? [
                () => on.dispute(invoice, "created", "needs_response"),
                () => on.dispute(invoice, "closed", isRestored ? "won" : "lost"),
              ]
            : [() => on.refund(invoice), () => on.failRefund(invoice)]
          const taken = { at: index + refundedAfter + 0.5, run: take }
          const back = { at: index + refundedAfter + 0.7, run: giveBack }
          return isRestored || (isDispute && isDecided) ? [paid, taken, back] : [paid, taken]
        })
        .toSorted((a, b) => a.at - b.at)
        .map(({ run }) => run)
      if (canceledOn !== null) happening.push(() => on.cancel(id, seconds(canceledOn)))

      const sending: Array<Promise<void>> = []
      const send = async ({ body }: SentEvent): Promise<void> => {
        const handled = webhook.receive(body, on.sign(body))
        sending.push(handled.then(() => undefined))
        if (!isConcurrent) await handled
      }
      const left: Array<SentEvent> = []
      for (const [index, run] of happening.entries()) {
        const event = run()
        const isEarly = early[index] ?? 0
        for (let times = 0; times < isEarly; times++) await send(event)
        await pass(history.delays[index % history.delays.length])
        const isLate = Math.max(late[index] ?? 0, isEarly === 0 ? 1 : 0)
        for (let times = 0; times < isLate; times++) left.push(event)
      }
      const shuffled = left
        .map((event, index) => ({ event, key: order[index] ?? 0 }))
        .toSorted((a, b) => a.key - b.key)
      for (const { event } of shuffled) await send(event)
      await Promise.all(sending)

      const isPaid = ({ isRestored, refundedAfter }: (typeof periods)[number]) =>
        refundedAfter === null || isRestored
      const isOpen = ({ isDecided, isDispute }: (typeof periods)[number]) =>
        disputes === "pause" && isDispute && !isDecided
      const endOf = (paying: typeof periods) =>
        Math.max(
          now,
          ...paying.map(({ to }) => {
            if (canceledOn === null) return to + graceDays
            return cancellation === "now" ? Math.min(to, canceledOn) : to
          }),
        )
      const undisputed = endOf(periods.filter(isPaid))
      const paid = endOf(periods.filter((one) => isPaid(one) || isOpen(one)))
      const [found] = await tenure.memberships.list({ projectId: "p1", userIds: [id] })
      expect(found === undefined ? now : (found.endDate - start) / day).toBe(paid)
      expect(found?.state ?? "active").toBe(undisputed < paid ? "paused" : "active")
    }),
    { numRuns },
  )
}
