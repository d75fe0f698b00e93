import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { Millis } from "../../src/base/time.ts"
import { ProjectId } from "../../src/base/values.ts"
import { clampConcurrency, concurrencyRange } from "../../src/webhooks/claim-budget.ts"
import {
  type ClaimedDelivery,
  type QueueSettings,
  addToQueue,
  changeSettings,
  claimDeliveries,
  forgetWebhook,
  makeDeliveryQueues,
  openDeliveries,
  queueOf,
  settleClaim,
} from "../../src/webhooks/delivery-queues.ts"
import { WebhookId } from "../../src/webhooks/webhook.ts"

const attempt = { at: 0, durationMillis: 1, result: { _tag: "Failed", reason: "x" } } as const

/** Two projects with three webhooks each: plain, ordered, and with a rate. */
const webhooks = Array.from({ length: 6 }, (_, index) => ({
  id: WebhookId(`00000000-0000-4000-8000-00000000000${index}`),
  projectId: ProjectId(`p${index % 2}`),
  ordered: index === 2 || index === 3,
  rate: index > 3 ? 4 : undefined,
  disabled: undefined,
}))

const anyWebhook = fc.constantFrom(...webhooks)
const room = fc.record({
  limit: fc.integer({ min: 1, max: 20 }),
  failing: fc.nat(3),
  perProject: fc.integer({ min: 1, max: 20 }),
  ahead: fc
    .array(fc.tuple(anyWebhook, fc.nat(4)), { maxLength: 2 })
    .map((all) => new Map(all.map(([{ id }, most]) => [id, most]))),
})

const outcomes = fc.constantFrom("Delivered", "Failed", "Released")
type Outcome = typeof outcomes extends fc.Arbitrary<infer A> ? A : never

const steps = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      _tag: fc.constant("add"),
      webhook: anyWebhook,
      count: fc.integer({ min: 1, max: 12 }),
      member: fc.constantFrom("a", "b"),
      isReplay: fc.boolean(),
    }),
  },
  { weight: 4, arbitrary: fc.record({ _tag: fc.constant("claim"), room }) },
  {
    weight: 4,
    arbitrary: fc.record({
      _tag: fc.constant("settle"),
      which: fc.nat(),
      outcome: outcomes,
    }),
  },
  fc.record({ _tag: fc.constant("replay"), which: fc.nat() }),
  fc.record({ _tag: fc.constant("pass"), millis: fc.nat(1500) }),
  fc.record({
    _tag: fc.constant("change"),
    webhook: anyWebhook,
    by: fc.constantFrom("failures", "request", undefined),
  }),
  fc.record({ _tag: fc.constant("forget"), webhook: anyWebhook }),
)
type Step = typeof steps extends fc.Arbitrary<infer A> ? A : never
type Room = typeof room extends fc.Arbitrary<infer A> ? A : never

interface Delivery {
  readonly webhook: (typeof webhooks)[number]
  readonly order: number
  readonly member: string | undefined
  isReplay: boolean
  dueTick: number
}

interface Queued {
  readonly delivery: Delivery
  readonly webhook: QueueSettings
}

const leaseMillis = 2000
const retryMillis = 500
const settlements = {
  Delivered: { _tag: "Delivered", attempt },
  Failed: { _tag: "Retry", attempt, holdMillis: 100, delayMillis: retryMillis },
  Released: { _tag: "Released" },
} as const
const allRoom: Room = { limit: 1000, failing: 1000, perProject: 1000, ahead: new Map() }

/** Makes queues, and records the claimed, added and ended deliveries. */
const makeWorld = () => {
  const queues = makeDeliveryQueues<Queued>()
  const claimed: Array<ClaimedDelivery<Queued>> = []
  const ended: Array<Delivery> = []
  let added = 0
  let tick = Millis(0)
  const now = () => ({ tick, unix: tick })
  const openOf = (id: WebhookId) => {
    const queue = queues.byWebhook.get(id)
    return queue === undefined ? [] : openDeliveries(queue)
  }

  const claim = (options: Room) => {
    const result = claimDeliveries(
      queues,
      { ...options, perWebhook: concurrencyRange, leaseMillis },
      now(),
    )
    ended.push(...result.givenUp)
    claimed.push(...result.claimed)
    return result
  }

  const wait = (delivery: Delivery): void => {
    if (!addToQueue(queues, queueOf(queues, delivery.webhook), delivery)) ended.push(delivery)
  }

  const add = (webhook: Delivery["webhook"], member: string, isReplay: boolean): void =>
    wait({
      webhook,
      order: ++added,
      member: webhook.ordered ? member : undefined,
      isReplay,
      dueTick: tick,
    })

  const replay = (which: number): void => {
    const [delivery] = ended.splice(which % Math.max(1, ended.length), 1)
    if (delivery !== undefined) wait(Object.assign(delivery, { isReplay: true, dueTick: tick }))
  }

  const settle = (one: ClaimedDelivery<Queued>, outcome: Outcome): void => {
    const settled = settleClaim(
      queues,
      one.queue.webhook.id,
      one.token,
      settlements[outcome],
      now(),
    )
    if (settled === undefined) return
    const { delivery, queue } = settled
    if (outcome === "Delivered") {
      queue.waiting.leave(delivery)
      ended.push(delivery)
      return
    }
    if (outcome === "Failed") delivery.dueTick = tick + retryMillis
    wait(delivery)
  }

  return {
    add,
    added: () => added,
    claim,
    claimed,
    ended,
    openOf,
    pass: (millis: number) => (tick = Millis(tick + millis)),
    queues,
    replay,
    settle,
  }
}

type World = ReturnType<typeof makeWorld>

/** Claims, and checks every promise about claims. */
const checkedClaim = (world: World, options: Room): void => {
  const { claim, openOf, pass } = world
  const { claimed, nextDueMillis } = claim(options)
  expect(claimed.length).toBeLessThanOrEqual(options.limit)
  const failing = options.failing - claimed.filter(({ queue }) => queue.failures > 0).length
  expect(failing).toBeGreaterThanOrEqual(0)
  for (const { delivery, queue, token } of claimed) {
    const { id } = queue.webhook
    const leases = [...queue.leases]
    const ahead = leases.filter(([, { isAhead }]) => isAhead)
    const most = queue.failures > 0 ? 1 : clampConcurrency(queue.concurrency, concurrencyRange)
    expect(leases.length - ahead.length).toBeLessThanOrEqual(most)
    if (queue.leases.get(token)?.isAhead === false) {
      const ofProject = [...queue.project.queues].flatMap((one) => [...one.leases.values()])
      const counted = ofProject.filter(({ isAhead }) => !isAhead)
      expect(counted.length).toBeLessThanOrEqual(options.perProject)
    }
    const own = new Set(claimed.map((one) => one.token))
    const asked = options.ahead.get(id) ?? 0
    expect(ahead.filter(([of]) => own.has(of)).length).toBeLessThanOrEqual(asked)
    const ofMember = openOf(id).filter(({ member }) => member === delivery.member)
    if (delivery.member !== undefined) {
      expect(Math.min(...ofMember.map(({ order }) => order))).toBe(delivery.order)
    }
  }
  // A rate's token bucket holds a quarter of the rate.
  const rated = claimed.map(({ queue }) => queue.webhook).filter(({ rate }) => rate)
  expect(new Set(rated).size).toBe(rated.length)
  if (nextDueMillis === 0) return
  // There is nothing more until `nextDueMillis`.
  const again = { ...options, failing, ahead: new Map() }
  expect(claim(again).claimed).toEqual([])
  if (nextDueMillis === undefined) return
  pass(nextDueMillis - 1)
  expect(claim(again).claimed).toEqual([])
}

const take = (world: World, step: Step): void => {
  const { add, claimed, ended, pass, queues, replay, settle } = world
  switch (step._tag) {
    case "add":
      for (let left = step.count; left > 0; left--) add(step.webhook, step.member, step.isReplay)
      return
    case "claim":
      return checkedClaim(world, step.room)
    case "settle": {
      const [one] = claimed.splice(step.which % Math.max(1, claimed.length), 1)
      return one && settle(one, step.outcome)
    }
    case "replay":
      return replay(step.which)
    case "pass":
      return void pass(step.millis)
    case "change": {
      const disabled = step.by && { at: 0, by: step.by }
      return void ended.push(...changeSettings(queues, { ...step.webhook, disabled }))
    }
    case "forget":
      ended.push(...forgetWebhook(queues, step.webhook.id))
  }
}

/** Enables all webhooks, and delivers whatever is left. */
const drain = (world: World): void => {
  for (const one of webhooks) changeSettings(world.queues, one)
  world.pass(leaseMillis)
  for (;;) {
    const { claimed, nextDueMillis } = world.claim(allRoom)
    for (const one of claimed) world.settle(one, "Delivered")
    if (claimed.length > 0) continue
    if (nextDueMillis === undefined) return
    // No claim with an expiring lease is left.
    expect(nextDueMillis).toBeLessThanOrEqual(retryMillis)
    world.pass(nextDueMillis)
  }
}

describe("the queues", () => {
  it("keep every promise of a claim, and lose no delivery, whatever happens", () => {
    const property = fc.property(fc.array(steps, { maxLength: 80, size: "max" }), (all) => {
      const world = makeWorld()
      for (const step of all) {
        take(world, step)
        const open = webhooks.flatMap(({ id }) => world.openOf(id))
        expect(new Set([...open, ...world.ended]).size).toBe(world.added())
        expect(open.length + world.ended.length).toBe(world.added())
      }
      drain(world)
      expect(world.ended).toHaveLength(world.added())
      for (const one of webhooks.slice(0, 2)) {
        world.add(one, "a", false)
        expect(world.claim({ ...allRoom, perProject: 1 }).claimed).toHaveLength(1)
      }
    })
    fc.assert(property, { numRuns: 200 })
  })
})
