/** Tenure for a host's tests: its clock, its recorded webhooks, and its errors. */

import { once } from "node:events"
import { createServer } from "node:http"
import { text } from "node:stream/consumers"
import { verifyWebhook } from "@tenure/client"
import type { Event, Tenure } from "@tenure/core"
import { membershipMiddleware } from "@tenure/express"
import { postgres } from "@tenure/postgres"
import { type TestTenure, type TestTenureOptions, testTenure } from "@tenure/testing"
import { freePort } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import express from "express"
import { describe, expect, inject, it, onTestFinished, vi } from "vitest"
import { sleepPoll } from "../../core/src/base/time.ts"
import { makeControlledRuntime } from "../src/controlled-runtime.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly databaseUrl: string
  }
}

const projectId = "club"
const member = { projectId, userId: "1001" }
const startDate = "2030-01-01T00:00:00.000Z"
const february = "2030-02-01T00:00:00.000Z"
const dayMillis = 86_400_000
const otherSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

/** A notification signed with another secret. */
const forged = () => ({
  headers: {
    "webhook-id": "msg_1",
    "webhook-timestamp": String(Math.floor(Date.now() / 1000)),
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  },
  body: "{}",
})

/** Starts Tenure, and closes it after the test. */
const start = async (options?: TestTenureOptions): Promise<TestTenure> => {
  const test = await testTenure(options)
  onTestFinished(test.close)
  return test
}

/** Serves Tenure with Express until the test ends. Returns a function to extend a membership, and its status. */
const extenderOf = async (tenure: Tenure) => {
  const { token } = await tenure.apiKeys.issue({ projects: [projectId] })
  const server = express().use(membershipMiddleware(tenure)).listen(0, "127.0.0.1")
  onTestFinished(() => void server.close())
  await once(server, "listening")
  const address = server.address()
  const url = typeof address === "object" ? `http://127.0.0.1:${address?.port}` : ""
  return async (userId: string, extend: string | number): Promise<number> => {
    const path = `/v2/projects/${projectId}/memberships/${userId}/extend`
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
    const body = JSON.stringify({ extend })
    return (await fetch(`${url}${path}`, { method: "PATCH", headers, body })).status
  }
}

/** What was sent, as `2030-01-01T00:00:00.000Z membership.granted 204`. */
const logOf = ({ webhooks }: TestTenure): ReadonlyArray<string> =>
  webhooks
    .all()
    .map(({ answer, sentAt, type }) => `${new Date(sentAt).toISOString()} ${type} ${answer}`)

describe("the clock", () => {
  it("starts at a fixed date, or at the one given", async () => {
    expect((await start()).clock.now()).toBe(Date.parse(startDate))
    expect((await start({ start: new Date(0) })).clock.now()).toBe(0)
    await expect(testTenure({ start: "tomorrow" })).rejects.toThrow(/^start must be a valid Date/)
  })

  it("runs a reminder, its retries and the end on the way, in order", async () => {
    const test = await start({
      expiry: { reminders: ["7 days"] },
      webhooks: { retrySchedule: ["1 hour", "8 days"] },
    })
    const { clock, tenure, webhooks } = test
    await webhooks.register(projectId)
    await tenure.memberships.grant({ ...member, endDate: february })
    await webhooks.next("membership.granted")
    webhooks.failNext(503)
    webhooks.failNext()
    await clock.advance("31 days")

    expect(clock.now()).toBe(Date.parse(february))
    const [granted, reminder, again, ...ends] = logOf(test)
    expect(granted).toBe(`${startDate} membership.granted 204`)
    expect(reminder).toBe("2030-01-25T00:00:00.000Z membership.expiring 503")
    // Delays vary by a fifth.
    expect(again).toMatch(/^2030-01-25T0[01]:\d\d:\d\d\.\d{3}Z membership\.expiring 500$/)
    expect(ends).toEqual([`${february} membership.expired 204`])

    await clock.advance("3 days")
    expect(logOf(test)).toHaveLength(5)
    expect(new Set(webhooks.all().map(({ id }) => id)).size).toBe(3)
  })

  it("stands still meanwhile, and moves only forward", async () => {
    const { clock, tenure } = await start()
    const { token } = await tenure.apiKeys.issue({ projects: "all" })
    expect(token).toMatch(/^tnr_/)
    expect(clock.now()).toBe(Date.parse(startDate))
    await clock.advanceTo(february)
    await expect(clock.advanceTo(startDate)).rejects.toThrow(
      "date must not be before the clock's time, 2030-02-01T00:00:00.000Z",
    )
    await expect(clock.advance(-1)).rejects.toThrow(/^duration must be a duration from 0/)
  })

  it("moves by a duration of ISO 8601, whose months are those of the calendar", async () => {
    const { clock } = await start()
    await clock.advance("P1M")
    expect(clock.now()).toBe(Date.parse(february))
    await clock.advance("P1MT12H")
    expect(clock.now()).toBe(Date.parse("2030-03-01T12:00:00.000Z"))
    const other: "P1M" = JSON.parse('"+1mo"')
    await expect(clock.advance(other)).rejects.toThrow(
      /^duration must be .*"15 seconds", or a duration of ISO 8601 such as "P1M"; received "\+1mo"/,
    )
  })

  it("takes no seconds and no days for instants", async () => {
    const { clock } = await start()
    await expect(clock.advanceTo(1_900_000_000)).rejects.toThrow("milliseconds, not seconds")
    await expect(clock.advanceTo("2030-02-01")).rejects.toThrow(
      "it begins at 2030-02-01T00:00:00.000Z",
    )
    await expect(testTenure({ start: 1_900_000_000 })).rejects.toThrow("milliseconds, not seconds")
    expect(clock.now()).toBe(Date.parse(startDate))
  })

  it("makes moves one after the other", async () => {
    const { clock } = await start()
    const times: Array<number> = []
    const note = () => times.push(clock.now() - Date.parse(startDate))
    await Promise.all([
      clock.advance(5).then(note),
      clock.advance(4).then(note),
      clock.advanceTo(Date.parse(startDate) + 7).then(note),
    ])
    expect(times).toEqual([5, 9, 9])
  })

  it("waits for WebCrypto, which works on other threads", async () => {
    const key = Buffer.alloc(32, 1).toString("base64")
    const test = await start({ webhooks: { encryption: { current: "a", keys: { a: key } } } })
    const { clock, tenure, webhooks } = test
    const { id } = await webhooks.register(projectId)
    await tenure.webhooks.addSigningKey({ projectId, webhookId: id })
    await tenure.memberships.grant({ ...member, endDate: february })
    await clock.advance("31 days")
    expect(logOf(test)).toEqual([
      `${startDate} membership.granted 204`,
      "2030-01-25T00:00:00.000Z membership.expiring 204",
      "2030-01-31T00:00:00.000Z membership.expiring 204",
      `${february} membership.expired 204`,
    ])
    expect(webhooks.all()[3]?.headers["webhook-signature"]).toMatch(/^v1,\S+ v1a,/)
  })

  it("need not be moved for changes that overtake each other", async () => {
    const encryption = { current: "k1", keys: { k1: Buffer.alloc(32, 1).toString("base64") } }
    const { tenure } = await start({ webhooks: { encryption } })
    await tenure.memberships.createProject(projectId)
    const { id } = await tenure.webhooks.create({ projectId, url: "https://receiver.example/" })
    const names = ["x-one", "x-two", "x-three"]
    await Promise.all(
      names.map((name) =>
        tenure.webhooks.update({ projectId, webhookId: id, headers: { [name]: "1" } }),
      ),
    )
    const { headerNames } = await tenure.webhooks.find({ projectId, webhookId: id })
    expect(headerNames).toEqual(names.toSorted())
  })

  it("restores rate limits", async () => {
    const { clock, tenure } = await start({
      rateLimits: { perKey: { limit: 1, window: "1 hour" } },
    })
    await tenure.memberships.createProject(projectId)
    await tenure.memberships.grant({ ...member, endDate: february })
    const extend = await extenderOf(tenure)
    const status = () => extend(member.userId, february)
    expect([await status(), await status()]).toEqual([200, 429])
    await clock.advance("1 hour")
    expect(await status()).toBe(200)
  })
})

describe("a host", () => {
  it("that extends at each reminder, by HTTP, is waited for", async () => {
    const requests: Array<Promise<number>> = []
    let renew = async (_userId: string): Promise<number> => 0
    const onEvent = ({ body, type }: Event): void | Promise<unknown> => {
      if (type !== "membership.expiring") return undefined
      const renewed = renew(JSON.parse(body).data.user_id)
      requests.push(renewed)
      return renewed
    }
    const test = await start({ onEvent, expiry: { reminders: ["3 days"] } })
    const { clock, tenure, webhooks } = test
    await webhooks.register(projectId)
    const extend = await extenderOf(tenure)
    renew = (userId) => extend(userId, clock.now() + 30 * dayMillis)
    await tenure.memberships.grant({ ...member, endDate: clock.now() + 30 * dayMillis })
    await clock.advance("270 days")

    expect(await Promise.all(requests)).toEqual(Array(10).fill(200))
    expect(new Set(webhooks.all().map(({ type }) => type))).toEqual(
      new Set(["membership.granted", "membership.expiring", "membership.extended"]),
    )
    const { endDate } = await tenure.memberships.find(member)
    expect(endDate).toBe(clock.now() + 30 * dayMillis)
  })

  it("may send requests while the clock moves", async () => {
    const { clock, tenure, webhooks } = await start()
    await webhooks.register(projectId)
    const extend = await extenderOf(tenure)
    const extended = "2031-01-01T00:00:00.000Z"
    const users = Array.from({ length: 20 }, (_, index) => String(index + 1))
    for (const [index, userId] of users.entries()) {
      const endDate = clock.now() + (index + 20) * dayMillis
      await tenure.memberships.grant({ projectId, userId, endDate })
    }
    const [, ...statuses] = await Promise.all([
      clock.advance("60 days"),
      ...users.map((userId) => extend(userId, extended)),
    ])
    expect(statuses).toEqual(users.map(() => 200))
    for (let count = 0; count < users.length; count++) await webhooks.next("membership.extended")
    const before = webhooks.all().length
    await clock.advanceTo("2030-12-01T00:00:00.000Z")
    expect(webhooks.all()).toHaveLength(before)
    await clock.advanceTo(extended)
    const ends = webhooks
      .all()
      .slice(before)
      .filter(({ type }) => type === "membership.expired")
    expect(ends).toHaveLength(users.length)
  })
})

describe("the recorded webhooks", () => {
  it("are the same in each run, with their ids and signatures", async () => {
    const run = async () => {
      const { clock, close, tenure, webhooks } = await start({
        webhooks: { retrySchedule: ["1 hour"] },
      })
      const { secret } = await webhooks.register(projectId)
      webhooks.failNext(500)
      await tenure.memberships.grant({ ...member, endDate: february })
      await clock.advance("32 days")
      await close()
      return { secret, sent: webhooks.all() }
    }
    const first = await run()
    expect(first.sent).toHaveLength(5)
    expect(await run()).toEqual(first)
  })

  it("can be verified by the code of a receiver", async () => {
    const { tenure, webhooks } = await start()
    const { secret } = await webhooks.register(projectId, "https://host.example/hook")
    await tenure.memberships.grant({ ...member, endDate: february })
    const sent = await webhooks.next("membership.granted")
    expect(sent.url).toBe("https://host.example/hook")
    const event = await verifyWebhook(sent, [secret], { now: sent.sentAt })
    expect(event).toMatchObject({ id: sent.id, type: sent.type, data: sent.data })
    expect(sent.data.user_id).toBe("1001")
  })

  it("are returned once each, and those of another type later", async () => {
    const { tenure, webhooks } = await start()
    await webhooks.register(projectId)
    await tenure.memberships.grant({ ...member, endDate: february })
    for (const amount of [1, 2]) {
      await tenure.events.publish({ projectId, type: "payment.completed", data: { amount } })
    }
    expect((await webhooks.next("payment.completed")).data).toEqual({ amount: 1 })
    expect((await webhooks.next("payment.completed")).data).toEqual({ amount: 2 })
    expect((await webhooks.next()).type).toBe("membership.granted")
    expect(webhooks.all()).toHaveLength(3)
  })

  it("are waited for, in real time", async () => {
    const { tenure, webhooks } = await start()
    await webhooks.register(projectId)
    const extend = await extenderOf(tenure)
    await tenure.memberships.grant({ ...member, endDate: "2030-01-20T00:00:00.000Z" })
    void extend(member.userId, february)
    expect((await webhooks.next("membership.extended")).data.new_end_date).toBe(february)
  })

  it("that are missing are explained", async () => {
    const { clock, tenure, webhooks } = await start({ webhooks: { retrySchedule: ["1 hour"] } })
    const options = { timeout: 0 }
    await expect(webhooks.next(undefined, options)).rejects.toThrow(
      `No webhook was sent until ${startDate}, the time of the clock. Recorded so far:\n  nothing`,
    )
    await webhooks.register(projectId)
    webhooks.failNext("timeout")
    await tenure.memberships.grant({ ...member, endDate: february })
    await webhooks.next("membership.granted")
    await expect(webhooks.next("membership.granted", options)).rejects.toMatchObject({
      _tag: "WebhookNotSent",
      message: [
        `No further webhook of the type membership.granted was sent until ${startDate}, the time of the clock. Recorded so far:`,
        `  ${startDate} membership.granted to https://receiver.example/, answered timeout`,
      ].join("\n"),
    })
    for (let amount = 1; amount <= 30; amount++) {
      await tenure.events.publish({ projectId, type: "payment.completed", data: { amount } })
    }
    await clock.advance("2 hours")
    await expect(webhooks.next("membership.expired", options)).rejects.toThrow(
      /so far:\n {2}… and 12 earlier\n(?: {2}\S+ \S+ to https:\S+ answered 204\n?){20}$/,
    )
  })

  it("fail only as they can", async () => {
    const { webhooks } = await start()
    expect(() => webhooks.failNext(204)).toThrow(/^answer must be a status from 300 to 599/)
    expect(() => webhooks.failNext(500, 0)).toThrow(/^times must be/)
  })
})

it("ends a poll that repeats itself at one point of time", async () => {
  const { advance, now, services } = makeControlledRuntime({ start: 0, isSeeded: true })
  const fiber = Effect.runForkWith(services)(Effect.forever(sleepPoll(1, now)))
  await expect(advance(() => 5)).rejects.toThrow(
    "Something repeats itself at 1970-01-01T00:00:00.000Z, after 10000 times",
  )
  await Effect.runPromise(Fiber.interrupt(fiber))
})

it("is not disturbed by fake timers", async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const { clock, tenure, webhooks } = await start()
  await webhooks.register(projectId)
  await tenure.memberships.grant({ ...member, endDate: february })
  await clock.advance("31 days")
  expect(webhooks.all()).toHaveLength(4)
  await expect(webhooks.next("webhook.ping", { timeout: 10 })).rejects.toThrow(/^No webhook of/)
})

it("closes with `await using`", async () => {
  let tenure: Tenure
  {
    await using test = await testTenure()
    tenure = test.tenure
    await tenure.memberships.createProject(projectId)
  }
  await expect(tenure.memberships.find(member)).rejects.toMatchObject({ _tag: "StoreUnavailable" })
})

it("closes an attempt without an answer, and then answers nothing", async () => {
  const { close, tenure, webhooks } = await start()
  await webhooks.register(projectId)
  webhooks.failNext("timeout")
  await tenure.memberships.grant({ ...member, endDate: february })
  await webhooks.next()
  await close()
  await expect(tenure.memberships.find(member)).rejects.toMatchObject({ _tag: "StoreUnavailable" })
})

describe("on PostgreSQL", () => {
  const stores = postgres({ url: inject("databaseUrl"), schema: "test_tenure" })

  it("refuses options that it does not know", async () => {
    for (const option of ["strat", "transport"]) {
      const options = JSON.parse(`{ "${option}": "2030-01-01T00:00:00.000Z" }`)
      await expect(testTenure(options)).rejects.toMatchObject({
        _tag: "InvalidInput",
        field: option,
      })
    }
  })

  it("refuses to set the clock", async () => {
    const test = await testTenure({ stores })
    onTestFinished(test.close)
    const refusal =
      "stores must be left out to advance the clock, because databases have clocks of their own"
    await expect(test.clock.advance("1 day")).rejects.toThrow(refusal)
    await expect(test.clock.advanceTo(february)).rejects.toThrow(refusal)
    await expect(testTenure({ stores, start: startDate })).rejects.toThrow(
      /^start must be left out/,
    )
  })
})

it("stands where it is stopped", async () => {
  const { advance, now, services } = makeControlledRuntime({ start: 0, isSeeded: false })
  Effect.runForkWith(services)(Effect.forever(Effect.sleep(10)))
  await advance(
    () => 1000,
    () => now() >= 50,
  )
  expect(now()).toBe(50)
  await advance(() => 100)
  expect(now()).toBe(100)
})

describe("webhooks that are forwarded", () => {
  it("are verified by a receiver that runs now, each once, whatever the clock says", async () => {
    const { clock, tenure, webhooks } = await start()
    const { secret } = await webhooks.register("p1")
    const verified: Array<string> = []
    const server = createServer(async (request, response) => {
      const body = await text(request)
      const event = await verifyWebhook({ headers: request.headers, body }, [secret])
      verified.push(event.type)
      response.writeHead(202).end("taken")
    })
    onTestFinished(() => void server.close())
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const address = server.address()
    const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/hook`
    await tenure.memberships.grant({ projectId: "p1", userId: "1", endDate: february })
    const [granted] = await webhooks.forward(url)
    expect(granted).toMatchObject({ status: 202, body: "taken" })
    await clock.advance("60 days")
    const later = await webhooks.forward(url)
    expect(later.map(({ sent: { type } }) => type)).toEqual(verified.slice(1))
    expect(verified).toEqual(expect.arrayContaining(["membership.granted", "membership.expired"]))
    expect(await webhooks.forward(url)).toEqual([])
    expect(webhooks.all()[0]?.sentAt).toBe(granted?.sent.sentAt)
  })

  it("wait for the next call if the receiver cannot be reached", async () => {
    const { tenure, webhooks } = await start()
    await webhooks.register("p1")
    await tenure.memberships.grant({ projectId: "p1", userId: "1", endDate: february })
    const nowhere = `http://127.0.0.1:${await freePort()}/`
    for (let times = 0; times < 2; times++)
      await expect(webhooks.forward(nowhere)).rejects.toThrow("fetch failed")
    await expect(webhooks.forward("file:///hook")).rejects.toMatchObject({ field: "url" })
  })
})

describe("an error has the caller's line first in its stack, if it is of", () => {
  const tooOld = new Date(0)
  it.each<readonly [string, (test: TestTenure) => Promise<unknown>]>([
    // @ts-expect-error: there is no such option.
    ["testTenure", () => testTenure({ clock: 1 })],
    ["advance", ({ clock }) => clock.advance(-1)],
    ["advanceTo", ({ clock }) => clock.advanceTo(tooOld)],
    ["next", ({ webhooks }) => webhooks.next("membership.expired", { timeout: 1 })],
    ["forward", ({ webhooks }) => webhooks.forward("x")],
    ["verifyWebhook", () => verifyWebhook({ headers: {}, body: "" }, [])],
    ["verifyWebhook, later", () => verifyWebhook(forged(), [otherSecret])],
  ])("%s", async (_, call) => {
    const test = await start()
    const error: unknown = await call(test).catch((reason: unknown) => reason)
    const frames = error instanceof Error ? error.stack?.split("\n    at ").slice(1) : []
    expect(frames?.[0]).toContain("test-tenure.test.ts")
  })
})
