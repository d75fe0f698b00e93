import { describe, expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { hostOrigin } from "../../src/base/change-context.ts"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { ProjectId } from "../../src/base/values.ts"
import { type Event, hooksLayer } from "../../src/events/event.ts"
import { MembershipStore } from "../../src/memberships/store.ts"
import { Outbox } from "../../src/webhooks/outbox.ts"
import { Webhooks } from "../../src/webhooks/webhooks.ts"
import {
  addWebhook,
  deliveriesOf,
  dispatching,
  hour,
  noDisruptions,
  otherUrl,
  pass,
  projectId,
  publish,
  publishMany,
  publishTo,
  scripted,
  settled,
  status,
  storesWith,
  untilStopped,
  url,
} from "./dispatching.ts"

describe("if the store", () => {
  const outages = [
    ["is unavailable", Effect.fail(new StoreUnavailable({ cause: "down" }))],
    ["has a bug", Effect.die("a bug")],
  ] as const

  it.effect.each(outages)(
    "%s, the dispatcher claims again after a second",
    ([_name, disruption]) => {
      const disruptions = noDisruptions()
      return dispatching(
        {},
        ({ sent }) =>
          Effect.gen(function* () {
            yield* addWebhook()
            disruptions.claim = disruption
            yield* publish
            yield* pass("5 seconds")
            expect(sent).toEqual([])
            disruptions.claim = Effect.void
            yield* pass("1 second")
            expect(sent).toHaveLength(1)
          }),
        {},
        storesWith(disruptions),
      )
    },
  )

  it.effect.each(outages)(
    "%s, the dispatcher watches for changes again after a second",
    ([_name, disruption]) => {
      const disruptions = noDisruptions()
      return dispatching(
        {},
        ({ sent }) =>
          Effect.gen(function* () {
            yield* addWebhook()
            disruptions.changes = disruption
            yield* publish
            yield* settled
            yield* publish
            disruptions.changes = Effect.void
            yield* pass("1 second")
            expect(sent).toHaveLength(2)
          }),
        {},
        storesWith(disruptions),
      )
    },
  )

  it.effect(
    "is unavailable for a short time, an attempt is recorded afterwards and not repeated",
    () => {
      const disruptions = noDisruptions()
      return dispatching(
        {},
        ({ sent }) =>
          Effect.gen(function* () {
            const webhook = yield* addWebhook()
            disruptions.settle = Effect.fail(new StoreUnavailable({ cause: "down" }))
            yield* publish
            yield* pass("10 seconds")
            disruptions.settle = Effect.void
            yield* pass("1 second")
            expect((yield* deliveriesOf(webhook))[0]?.state).toBe("delivered")
            yield* pass("1 hour")
            expect(sent).toHaveLength(1)
          }),
        {},
        storesWith(disruptions),
      )
    },
  )

  it.effect("is unavailable for longer than a lease, the delivery is attempted again", () => {
    const disruptions = noDisruptions()
    return dispatching(
      {},
      ({ sent }) =>
        Effect.gen(function* () {
          const webhook = yield* addWebhook()
          disruptions.settle = Effect.fail(new StoreUnavailable({ cause: "down" }))
          yield* publish
          yield* pass("29 seconds")
          expect(sent).toHaveLength(1)
          disruptions.settle = Effect.void
          yield* pass("2 seconds")
          expect(sent).toHaveLength(2)
          expect((yield* deliveriesOf(webhook))[0]?.state).toBe("delivered")
        }),
      {},
      storesWith(disruptions),
    )
  })
})

describe("if nothing is due", () => {
  it.effect("the dispatcher does not claim until an event is published", () => {
    const disruptions = noDisruptions()
    let asked = 0
    disruptions.claim = Effect.sync(() => void asked++)
    return dispatching(
      {},
      ({ sent }) =>
        Effect.gen(function* () {
          yield* addWebhook()
          yield* pass("1 minute")
          const before = asked
          yield* pass("1 hour")
          expect(asked).toBe(before)
          yield* publish
          yield* settled
          expect(sent).toHaveLength(1)
        }),
      {},
      storesWith(disruptions),
    )
  })
})

describe("if the store returns nothing and says that more is due at once", () => {
  it.effect("the dispatcher pauses between claims", () => {
    let asked = 0
    let nextDueMillis: number | undefined
    const claim = Effect.sync(() => {
      asked++
      return { claims: [], nextDueMillis, keptBack: [] }
    })
    const busy = Layer.effect(
      Outbox,
      Effect.map(Outbox, (outbox) => ({ ...outbox, claim: () => claim })),
    )
    return dispatching(
      {},
      () =>
        Effect.gen(function* () {
          yield* addWebhook()
          nextDueMillis = 0
          yield* publish
          yield* pass("1 second")
          expect(asked).toBeGreaterThan(10)
          expect(asked).toBeLessThan(30)
        }),
      {},
      Layer.provideMerge(busy, memory()),
    )
  })
})

describe("when the dispatcher stops", () => {
  it.effect("attempts in flight are aborted and can be claimed again at once", () =>
    Effect.gen(function* () {
      const { aborted, layer, sent } = scripted({ [url]: () => Effect.never })
      yield* Effect.gen(function* () {
        const step = Effect.gen(function* () {
          yield* addWebhook()
          yield* publishMany(3)
          yield* settled
        })
        yield* untilStopped(layer, step)
        expect([sent.length, aborted.length]).toEqual([3, 3])
        const outbox = yield* Outbox
        const { claims } = yield* outbox.claim({
          limit: 10,
          failing: 10,
          perWebhook: { least: 4, most: 4 },
          perProject: 100,
          ahead: new Map(),
          leaseMillis: 1000,
        })
        expect(claims.map(({ attemptNumber }) => attemptNumber)).toEqual([1, 1, 1])
      }).pipe(Effect.provide(memory()))
    }),
  )
})

describe("a webhook that keeps failing", () => {
  it.effect("is attempted once a minute after ten failures, and normally after a success", () => {
    let isWell = false
    return dispatching({ [url]: () => status(isWell ? 200 : 500) }, ({ sent }) =>
      Effect.gen(function* () {
        yield* addWebhook()
        yield* publishMany(100)
        yield* settled
        // Ten attempts, and those that were claimed before the tenth had failed.
        expect(sent.length).toBeLessThanOrEqual(16)
        const before = sent.length
        yield* pass("10 seconds")
        expect(sent.length - before).toBeLessThan(10)
        isWell = true
        yield* pass("1 minute")
        expect(sent.length).toBeGreaterThan(100)
      }),
    )
  })

  it.effect("is disabled after five days, and the other webhooks and the host are told", () => {
    const told: Array<Event> = []
    const test = dispatching({ [url]: () => status(500) }, ({ sent }) =>
      Effect.gen(function* () {
        const { id } = yield* addWebhook()
        yield* addWebhook(otherUrl)
        yield* publish
        yield* pass("4 days")
        yield* publish
        yield* pass("23 hours")
        expect((yield* (yield* Webhooks).list({ projectId }))[0]?.disabled).toBeUndefined()
        yield* pass("1 day")
        const [webhook] = yield* (yield* Webhooks).list({ projectId })
        expect(webhook?.disabled).toEqual({ at: expect.any(Number), by: "failures" })
        const announced = told.filter(({ type }) => type === "webhook.disabled")
        expect(announced.map(({ body }) => JSON.parse(body).data.webhook_id)).toEqual([id])
        const announcements = sent.filter(({ body }) => body.includes("webhook.disabled"))
        expect(announcements.map((request) => request.url)).toEqual([otherUrl])
        expect(JSON.parse(announcements[0]?.body ?? "")).toMatchObject({
          type: "webhook.disabled",
          data: { project_id: projectId, webhook_id: id, reason: "failing" },
        })
        const before = sent.filter((request) => request.url === url).length
        yield* publish
        yield* pass("5 days")
        expect(sent.filter((request) => request.url === url)).toHaveLength(before)
      }),
    )
    return Effect.provide(test, hooksLayer({ onEvent: (event) => void told.push(event) }))
  })
})

describe("a webhook that fails for days", () => {
  it.effect("is announced at 50, 90 and 100 % of the time, in each run of failures", () => {
    const day = 24 * hour
    const told: Array<Event> = []
    let isWell = false
    const announced = () =>
      told
        .filter(({ type }) => type.startsWith("webhook."))
        .map((event) => {
          const { data, timestamp, type } = JSON.parse(event.body)
          return { type, data, at: Date.parse(timestamp), id: event.id }
        })
    const publishHourly = (hours: number) =>
      Effect.forEach(Array.from({ length: hours }), () => Effect.andThen(publish, pass("1 hour")), {
        discard: true,
      })
    const test = dispatching({ [url]: () => status(isWell ? 200 : 503) }, ({ sent }) =>
      Effect.gen(function* () {
        const webhooks = yield* Webhooks
        const { id: webhookId } = yield* webhooks.create({ projectId, url })
        yield* webhooks.create({
          projectId,
          url: otherUrl,
          eventTypes: ["webhook.failing", "webhook.disabled"],
        })
        yield* publishHourly(6 * 24)
        const run = announced()
        expect(run.map(({ data, type }) => [type, data.percent ?? data.reason])).toEqual([
          ["webhook.failing", 50],
          ["webhook.failing", 90],
          ["webhook.failing", 100],
          ["webhook.disabled", "failing"],
        ])
        const since = Date.parse(run[0]?.data.failing_since)
        for (const { at, data, type } of run) {
          expect(data.last_attempt).toMatchObject({ status: 503, error: null })
          if (type === "webhook.disabled") continue
          expect(data).toEqual({
            project_id: projectId,
            webhook_id: webhookId,
            percent: data.percent,
            failing_since: new Date(since).toISOString(),
            disables_at: new Date(since + 5 * day).toISOString(),
            failures: sent.filter((one) => one.url === url && one.at <= at).length,
            last_attempt: expect.anything(),
          })
          const late = at - since - (data.percent / 100) * 5 * day
          expect(late).toBeGreaterThanOrEqual(0)
          expect(late).toBeLessThan(2 * hour)
        }
        // The ids order them in the feed.
        expect(run.map(({ id }) => id).toSorted()).toEqual(run.map(({ id }) => id))
        expect(
          sent.filter((one) => one.url === otherUrl).map(({ body }) => JSON.parse(body).data),
        ).toEqual(run.map(({ data }) => data))

        yield* webhooks.enable({ projectId, webhookId })
        yield* publishHourly(3 * 24)
        isWell = true
        yield* publishHourly(24)
        isWell = false
        yield* publishHourly(3 * 24)
        const later = announced().slice(run.length)
        expect(later.map(({ data }) => data.percent)).toEqual([50, 50])
      }),
    )
    return Effect.provide(test, hooksLayer({ onEvent: (event) => void told.push(event) }))
  })
})

describe("fairness", () => {
  it.effect("a webhook has at most four attempts in flight, and one while it fails", () =>
    dispatching({ [url]: () => Effect.never }, ({ sent }) =>
      Effect.gen(function* () {
        yield* addWebhook()
        yield* publishMany(20)
        yield* settled
        expect(sent).toHaveLength(4)
        yield* pass("16 seconds")
        expect(sent).toHaveLength(5)
      }),
    ),
  )

  it.effect("a receiver that hangs does not delay another", () =>
    dispatching({ [url]: () => Effect.never }, ({ sent }) =>
      Effect.gen(function* () {
        yield* addWebhook(url)
        yield* addWebhook(otherUrl)
        yield* publishMany(50)
        yield* settled
        expect(sent.filter((request) => request.url === otherUrl)).toHaveLength(50)
      }),
    ),
  )

  it.effect("a thousand receivers of 25 projects that hang do not delay another project", () => {
    const hanging = Array.from({ length: 25 }, (_, index) => ProjectId(`hanging${index}`))
    const urls = Array.from({ length: 41 }, (_, index) => `https://hanging.example/${index}`)
    return dispatching(
      Object.fromEntries(urls.map((one) => [one, () => Effect.never])),
      ({ sent }) =>
        Effect.gen(function* () {
          const { createProject } = yield* MembershipStore
          yield* Effect.forEach(hanging, (project) =>
            createProject(project, { origin: hostOrigin, at: 0 }),
          )
          yield* Effect.forEach(hanging, (project) =>
            Effect.forEach(urls, (one) => addWebhook(one, project)),
          )
          yield* addWebhook(otherUrl)
          yield* Effect.forEach(Array.from({ length: 8 }), () =>
            Effect.forEach(hanging, (project) => publishTo(project)),
          )
          yield* settled
          const hung = sent.length
          expect(hung).toBeLessThan(900)
          yield* publishMany(20)
          yield* settled
          expect(sent.filter((request) => request.url === otherUrl)).toHaveLength(20)
          expect(sent).toHaveLength(hung + 20)
        }),
      {},
    )
  })

  it.effect("receivers that hang do not delay another receiver of their project", () => {
    const hanging = Array.from({ length: 49 }, (_, index) => `https://hanging.example/${index}`)
    return dispatching(
      Object.fromEntries(hanging.map((one) => [one, () => Effect.never])),
      ({ sent }) =>
        Effect.gen(function* () {
          yield* Effect.forEach(hanging, (one) => addWebhook(one))
          yield* publishMany(8)
          yield* settled
          yield* addWebhook(otherUrl)
          yield* publishMany(20)
          yield* settled
          expect(sent.filter((request) => request.url === otherUrl)).toHaveLength(20)
        }),
    )
  })

  const projects = ["a", "b", "c", "d", "e"].map((name) => ProjectId(name))

  it.effect(
    "webhooks that fail have half of maxInFlight, and the others do not wait for them",
    () =>
      dispatching(
        { [url]: () => Effect.never },
        ({ sent }) =>
          Effect.gen(function* () {
            const { createProject } = yield* MembershipStore
            yield* Effect.forEach(projects, (project) =>
              createProject(project, { origin: hostOrigin, at: 0 }),
            )
            yield* Effect.forEach(projects, (project) => addWebhook(url, project))
            yield* Effect.forEach(projects, (project) => publishTo(project))
            // Every webhook has failed once, and each has a retry that is due.
            yield* pass("40 seconds")
            yield* addWebhook(otherUrl)
            const before = sent.length
            yield* Effect.forEach([1, 2, 3], () => publish)
            yield* settled
            expect(sent.slice(before).map((request) => request.url)).toEqual(
              Array.from({ length: 3 }, () => otherUrl),
            )
          }),
        { maxInFlight: 4, retrySchedule: Array.from({ length: 10 }, () => "1 second" as const) },
      ),
  )

  it.effect("at most maxInFlight attempts are in flight over all projects", () =>
    dispatching(
      { [url]: () => Effect.never },
      ({ sent }) =>
        Effect.gen(function* () {
          const { createProject } = yield* MembershipStore
          yield* Effect.forEach(projects, (project) =>
            createProject(project, { origin: hostOrigin, at: 0 }),
          )
          yield* Effect.forEach(projects, (project) => addWebhook(url, project))
          yield* Effect.forEach(projects, (project) => publishTo(project))
          yield* settled
          expect(sent).toHaveLength(3)
        }),
      { maxInFlight: 3 },
    ),
  )
})
