/** Webhooks in dry runs, compared with the webhooks sent afterwards. */

import { testTenure } from "@tenure/testing"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { EventsPreview } from "../../src/memberships/dry-run.ts"
import type { PromisedServices } from "../../src/promises.ts"

type Service = PromisedServices["memberships"]

interface Answer {
  readonly events?: EventsPreview | undefined
}

/** A change, made twice: at first as a dry run. */
type Step = (memberships: Service, dry: object) => Promise<Answer>

const projectId = "p1"
const member = { projectId, userId: "1001" }
const day = 86_400_000
const start = Date.parse("2030-01-01T00:00:00.000Z")

const dates = fc.integer({ min: 1, max: 5 }).map((days) => start + days * day)
const modes = fc.constantFrom("set" as const, "neverShorten" as const, undefined)
const reasons = fc.constantFrom("invoice 117", undefined)

let keys = 0
const idempotencyKey = () => `key-${keys++}`

const steps: fc.Arbitrary<Step> = fc.oneof(
  fc.tuple(dates, modes, reasons).map(
    ([endDate, mode, reason]): Step =>
      ({ extend }, dry) =>
        extend({ ...member, endDate, mode, reason, ...dry }),
  ),
  fc.constantFrom("P1D", "P1M", "PT36H").map(
    (by): Step =>
      ({ extend }, dry) =>
        extend({ ...member, by, idempotencyKey: idempotencyKey(), ...dry }),
  ),
  fc.tuple(dates, modes, reasons).map(
    ([endDate, mode, reason]): Step =>
      ({ extendAll }, dry) =>
        extendAll({ projectId, endDate, mode, reason, ...dry }),
  ),
  fc.constantFrom("P1D", "PT36H").map(
    (by): Step =>
      ({ extendAll }, dry) =>
        extendAll({ projectId, by, idempotencyKey: idempotencyKey(), ...dry }),
  ),
  fc.uniqueArray(fc.constantFrom("1001", "1002", "1003"), { minLength: 1 }).map(
    (users): Step =>
      (memberships, dry) =>
        memberships.import({
          projectId,
          memberships: users.map((userId) => ({ userId, endDate: start + 9 * day })),
          ...dry,
        }),
  ),
  fc.constant<Step>(async ({ bulkExtensions, undoBulkExtension }, dry) => {
    const newest = (await bulkExtensions({ projectId })).find(({ undone }) => undone === undefined)
    return newest === undefined ? {} : undoBulkExtension({ projectId, id: newest.id, ...dry })
  }),
)

const types = [
  "membership.extended",
  "memberships.extended",
  "memberships.imported",
  "memberships.extension_undone",
  "membership.granted",
]

const receivers = fc.array(
  fc.record({
    eventTypes: fc.option(fc.subarray(types, { minLength: 1 }), { nil: undefined }),
    isDisabled: fc.boolean(),
  }),
  { maxLength: 3 },
)

/** Returns webhooks by URL, without fields known only after publication. */
const lasting = (
  all: ReadonlyArray<{ readonly url: string; readonly body: string }>,
): ReadonlyArray<readonly [string, object]> =>
  all
    .map(({ body, url }) => {
      const { timestamp, ...rest }: { readonly timestamp: string } = JSON.parse(body)
      expect(timestamp).toMatch(/Z$/)
      return [url, rest] as const
    })
    .toSorted(([one], [other]) => (one < other ? -1 : 1))

describe("a dry run with events", () => {
  it("shows the webhooks that are then sent, and sends none", async () => {
    const input = fc.record({ receivers, steps: fc.array(steps, { minLength: 1, maxLength: 6 }) })
    await fc.assert(
      fc.asyncProperty(input, async ({ receivers: asked, steps: all }) => {
        await using test = await testTenure({ start: new Date(start), expiry: false })
        const { clock, tenure, webhooks } = test
        await tenure.memberships.createProject(projectId)
        for (const [index, { eventTypes, isDisabled }] of asked.entries()) {
          const url = `https://receiver.example/${index}`
          const { id } = await tenure.webhooks.create({
            projectId,
            url,
            ...(eventTypes && { eventTypes }),
          })
          if (!isDisabled) continue
          webhooks.failNext(410)
          await tenure.webhooks.ping({ projectId, webhookId: id })
          await clock.advance("1 minute")
        }
        await tenure.memberships.grant({
          ...member,
          endDate: start + 3 * day,
          metadata: { plan: "gold" },
        })
        await clock.advance("1 minute")
        for (const step of all) {
          const before = webhooks.all().length
          const { events = { total: 0, byType: {}, first: [] } } = await step(tenure.memberships, {
            dryRun: true,
            events: true,
          })
          await clock.advance("1 minute")
          expect(webhooks.all()).toHaveLength(before)
          expect(await step(tenure.memberships, {})).not.toHaveProperty("events.total")
          await clock.advance("1 minute")
          const sent = webhooks.all().slice(before)
          expect(lasting(events.first)).toEqual(lasting(sent))
          expect(events.total).toBe(sent.length)
          const counted = Object.entries(events.byType)
          expect(counted).toEqual(sent.length === 0 ? [] : [[sent[0]?.type, sent.length]])
        }
      }),
      { numRuns: 40 },
    )
  })

  it("of an import counts new members, those that would end earlier, and those that stay", async () => {
    await using test = await testTenure()
    const { memberships } = test.tenure
    const [early, endDate, late] = [start, start + day, start + 2 * day].map(
      (date) => new Date(date),
    )
    const rows = Object.entries({ new: endDate, later: late, earlier: early, same: endDate })
    const imported = {
      projectId,
      memberships: rows.map(([userId, date = start]) => ({ userId, endDate: date })),
    }
    const missing = { _tag: "ProjectNotFound" }
    await expect(memberships.import({ ...imported, dryRun: true })).rejects.toMatchObject(missing)
    await memberships.createProject(projectId)
    for (const userId of ["later", "earlier", "same", "other"]) {
      await memberships.grant({ projectId, userId, endDate: start + day })
    }
    const counts = { total: 4, wouldGrant: 1, wouldShorten: 1, wouldStay: 1 }
    expect(await memberships.import({ ...imported, dryRun: true })).toMatchObject(counts)
    expect(await memberships.import(imported)).toEqual({ total: 4 })
  })
})
