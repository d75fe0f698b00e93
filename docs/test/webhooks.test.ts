/** The receiver in `docs/webhooks.md` knows the end dates, in whatever order events come. */

import { writeFile } from "node:fs/promises"
import fc from "fast-check"
import { type Tenure, createTenure } from "tenure"
import type { WebhookEvent } from "tenure/client"
import { memory } from "tenure/memory"
import { expect, it } from "vitest"
import { findExamples, writeExamples } from "./examples.ts"

const projectId = "p1"
const users = ["1001", "1002", "1003"]

interface Receiver {
  readonly receive: (event: WebhookEvent) => void
  readonly endDateOf: (userId: string) => string | null
}

const examples = await findExamples()
const code = examples.find((one) => one.code.includes("export const endDateOf"))?.code ?? ""
const folder = await writeExamples("webhooks", [])
let runs = 0

/** A receiver that knows nothing yet. */
const receiver = async (): Promise<Receiver> => {
  const page = `${folder}/receiver${++runs}.ts`
  await writeFile(page, code)
  return import(page)
}

const userId = fc.constantFrom(...users)
const endDate = fc.constantFrom(...[2097, 2098, 2099].map((year) => new Date(`${year}-01-01`)))

type Change = (memberships: Tenure["memberships"]) => Promise<unknown>

const dated = fc.record({ userId, endDate })
const mode = fc.constantFrom("set" as const, "neverShorten" as const)

const changes = fc.array(
  fc.oneof(
    dated.map(
      (one): Change =>
        (on) =>
          on.grant({ projectId, ...one }),
    ),
    dated.map(
      (one): Change =>
        (on) =>
          on.extend({ projectId, ...one }),
    ),
    userId.map(
      (one): Change =>
        (on) =>
          on.end({ projectId, userId: one }),
    ),
    fc.integer({ min: 1, max: 1000 }).map((hours): Change => {
      const idempotencyKey = crypto.randomUUID()
      return (on) => on.extendAll({ projectId, by: `PT${hours}H`, idempotencyKey })
    }),
    fc.nat().map((which): Change => async (on) => {
      const made = await on.bulkExtensions({ projectId })
      const { id } = made[which % Math.max(1, made.length)] ?? { id: "" }
      await on.undoBulkExtension({ projectId, id })
    }),
    fc.record({ endDate, mode }).map(
      (one): Change =>
        (on) =>
          on.extendAll({ projectId, ...one }),
    ),
  ),
  { minLength: 1, maxLength: 12 },
)

it("the receiver knows the end dates, whatever the order of the events", async () => {
  const order = fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true }))
  await fc.assert(
    fc.asyncProperty(changes, order, async (all, random) => {
      const events: Array<WebhookEvent> = []
      const tenure = await createTenure({
        stores: memory(),
        onEvent: ({ body, id }) => events.push({ id, ...JSON.parse(body) }),
      })
      await tenure.memberships.createProject(projectId)
      for (const change of all) await change(tenure.memberships).catch(() => undefined)
      const { endDateOf, receive } = await receiver()
      const late = events.map((event) => ({ event, place: random.next().value }))
      const mixed = late.toSorted((one, other) => one.place - other.place)
      for (const { event } of [...mixed, ...mixed.slice(0, 3)]) receive(event)
      const members = await tenure.memberships.list({ projectId })
      await tenure.close()
      const expected = users.map((one) => members.find((member) => member.userId === one))
      expect(users.map(endDateOf)).toEqual(
        expected.map((member) => (member ? new Date(member.endDate).toISOString() : null)),
      )
    }),
    { numRuns: 50 },
  )
})
