import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { claimBudget } from "../../src/webhooks/claim-budget.ts"
import { maxAttemptsOfWebhook } from "../../src/webhooks/outbox.ts"

describe("the room for more attempts", () => {
  const sizes = fc.nat({ max: 3000 })
  const bounds = fc.integer({ min: 1, max: 2000 })

  /** The room where none of the attempts is for a failing webhook. */
  const roomFor = (size: number, most: number) =>
    claimBudget({ all: size, failing: 0, queued: 0 }, most)

  it("is at most what is free, and at least one if anything is free", () => {
    fc.assert(
      fc.property(sizes, bounds, (size, most) => {
        const room = roomFor(size, most)
        if (size >= most) expect(room).toBeUndefined()
        else {
          expect(room?.limit).toBeGreaterThanOrEqual(1)
          expect(room?.limit).toBeLessThanOrEqual(most - size)
          expect(room?.perWebhook.least).toBeGreaterThanOrEqual(1)
          expect(room?.perWebhook.least).toBeLessThanOrEqual(4)
          expect(room?.perWebhook.most).toBe(2 * size <= most ? 16 : room?.perWebhook.least)
          expect(room?.perProject).toBeGreaterThanOrEqual(1)
          expect(room?.perProject).toBeLessThanOrEqual(most - size)
        }
      }),
    )
  })

  it("is none, rather than room for nothing, as soon as all is taken", () => {
    expect([roomFor(4, 5)?.limit, roomFor(5, 5), roomFor(6, 5)]).toEqual([1, undefined, undefined])
  })

  it("is smaller for each webhook the less is free: the last eighth is for webhooks without attempts", () => {
    const perWebhook = (size: number) => Object.values(roomFor(size, 1024)?.perWebhook ?? {})
    expect([0, 512, 513, 768, 1023].map(perWebhook)).toEqual([
      [4, 16],
      [4, 16],
      [4, 4],
      [2, 2],
      [1, 1],
    ])
  })

  it("allows to claim ahead a sixteenth of it, less what waits already, while half is free", () => {
    const ahead = (all: number, queued: number) =>
      claimBudget({ all, failing: 0, queued }, 1024)?.ahead
    expect([ahead(0, 0), ahead(512, 60), ahead(400, 64), ahead(400, 70)]).toEqual([64, 4, 0, 0])
    expect([ahead(513, 0), claimBudget({ all: 0, failing: 0, queued: 0 }, 15)?.ahead]).toEqual([
      0, 0,
    ])
  })

  it("is for failing webhooks until they have half of it, and for the others as long as it lasts", () => {
    const failing = (count: number) =>
      claimBudget({ all: count, failing: count, queued: 0 }, 1024)?.failing
    expect([0, 1, 511, 512, 600].map(failing)).toEqual([512, 511, 1, 0, 0])
    expect(claimBudget({ all: 512, failing: 512, queued: 0 }, 1024)).toMatchObject({ limit: 128 })
    expect(claimBudget({ all: 0, failing: 0, queued: 0 }, 1)).toMatchObject({
      limit: 1,
      failing: 1,
    })
  })

  it("lasts for another project, in whatever order thirty projects take all that they get", () => {
    const orders = fc.infiniteStream(fc.nat({ max: 29 }))
    fc.assert(
      fc.property(fc.integer({ min: 512, max: 4096 }), orders, (most, order) => {
        const claimed = new Map<number, number>()
        let size = 0
        for (const project of order.take(300)) {
          const room = roomFor(size, most)
          const own = claimed.get(project) ?? 0
          const taken = Math.max(0, Math.min(room?.limit ?? 0, (room?.perProject ?? 0) - own))
          claimed.set(project, own + taken)
          size += taken
        }
        expect(roomFor(size, most)).toBeDefined()
      }),
    )
  })
})

describe("the most deliveries of a webhook within the limit of its project", () => {
  const limits = fc.integer({ min: 1, max: 1000 })
  const concurrencies = fc.integer({ min: 1, max: 16 })

  it("is at least one below the limit, none at the limit, and never grows with what is claimed", () => {
    fc.assert(
      fc.property(concurrencies, limits, fc.nat({ max: 2000 }), (concurrency, limit, claimed) => {
        const most = maxAttemptsOfWebhook(concurrency, limit, claimed)
        expect(most > 0).toBe(claimed < limit)
        expect(most).toBeLessThanOrEqual(concurrency)
        expect(maxAttemptsOfWebhook(concurrency, limit, claimed + 1)).toBeLessThanOrEqual(most)
      }),
    )
  })
})
