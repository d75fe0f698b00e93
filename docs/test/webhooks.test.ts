/** The receiver of `docs/webhooks.md` knows the end dates, in whatever order events come. */

import { mkdir, rm, writeFile } from "node:fs/promises"
import fc from "fast-check"
import { type Tenure, createTenure } from "tenure"
import type { WebhookEvent } from "tenure/client"
import { memory } from "tenure/memory"
import { beforeAll, describe, expect, it } from "vitest"
import { findExamples, root } from "./examples.ts"

const folder = `${root}/docs/.webhooks`
const projectId = "p1"
const users = ["1001", "1002", "1003"]

interface Receiver {
  readonly receive: (event: WebhookEvent) => void
  readonly endDateOf: (userId: string) => string | null
}

let code: string
let runs = 0

beforeAll(async () => {
  const examples = await findExamples()
  code = examples.find((one) => one.code.includes("export const endDateOf"))?.code ?? ""
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder)
})

/** A receiver that knows nothing yet. */
const receiver = async (): Promise<Receiver> => {
  const page = `${folder}/receiver${++runs}.ts`
  await writeFile(page, code)
  return import(page)
}

const userId = fc.constantFrom(...users)
const endDate = fc.constantFrom(...[2097, 2098, 2099].map((year) => new Date(`${year}-01-01`)))

type Change = (memberships: Tenure["memberships"]) => Promise<unknown>

const changes = fc.array(
  fc.oneof(
    fc.record({ userId, endDate }).map(
      (one): Change =>
        (on) =>
          on.grant({ projectId, ...one }),
    ),
    fc.record({ userId, endDate }).map(
      (one): Change =>
        (on) =>
          on.extend({ projectId, ...one }),
    ),
    fc.record({ userId }).map(
      (one): Change =>
        (on) =>
          on.end({ projectId, ...one }),
    ),
    fc.integer({ min: 1, max: 1000 }).map(
      (hours): Change =>
        (on) =>
          on.extendAll({ projectId, by: `PT${hours}H`, idempotencyKey: crypto.randomUUID() }),
    ),
    fc.nat().map((which): Change => async (on) => {
      const made = await on.bulkExtensions({ projectId })
      const { id } = made[which % Math.max(1, made.length)] ?? { id: "" }
      await on.undoBulkExtension({ projectId, id })
    }),
    fc.record({ endDate, mode: fc.constantFrom("set" as const, "neverShorten" as const) }).map(
      (one): Change =>
        (on) =>
          on.extendAll({ projectId, ...one }),
    ),
  ),
  { minLength: 1, maxLength: 12 },
)

describe("the receiver", () => {
  it("knows the end dates, whatever the order of the events", async () => {
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
})
