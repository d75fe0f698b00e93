import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import type { ChangeContext } from "../src/base/change-context.ts"
import { StoreUnavailable } from "../src/base/errors.ts"
import { Transactions } from "../src/base/transactions.ts"
import { ProjectId } from "../src/base/values.ts"
import { emptyBody } from "../src/http/request.ts"
import { RateLimitStore } from "../src/limits/buckets.ts"
import { MembershipStore } from "../src/memberships/store.ts"
import type { Promises } from "../src/promises.ts"
import { type Tenure, type TenureOptions, createTenure } from "../src/tenure.ts"

const endDate = "2099-01-01T00:00:00.000Z"
const member = { projectId: "p1", userId: "1001" }

const listing = {
  method: "GET",
  path: "/v2/projects/p1/integrations/webhooks",
  headers: {},
  body: emptyBody,
  remoteAddress: undefined,
}

let tenure: Tenure

beforeEach(async () => {
  tenure = await createTenure({ stores: memory() })
  await tenure.memberships.createProject("p1")
})

afterEach(() => tenure.close())

describe("memberships", () => {
  it("are granted, read, listed, extended and ended", async () => {
    const { memberships } = tenure
    const granted = await memberships.grant({ ...member, endDate: "2001-01-01T00:00:00.000Z" })
    const expired = { ...granted, state: "expired" }
    expect(await memberships.find(member)).toEqual(expired)
    expect(await memberships.list({ projectId: "p1" })).toEqual([expired])
    const extended = await memberships.extend({ ...member, endDate })
    expect(extended).toEqual({ ...member, endDate: Date.parse(endDate) })
    const metadata = { plan: "gold" }
    const found = { ...extended, metadata, state: "active" }
    expect(await memberships.update({ ...member, metadata })).toEqual(found)
    expect(await memberships.find(member)).toEqual(found)
    const bulk = await memberships.extendAll({ projectId: "p1", endDate: 4_102_444_800_000 })
    expect(bulk).toEqual({ endDate: 4_102_444_800_000, total: 1 })
    await memberships.end(member)
    await expect(memberships.find(member)).rejects.toMatchObject({ _tag: "MembershipNotFound" })
    const rows = await memberships.history({ ...member })
    const actions = ["ended", "bulk_extended", "updated", "extended", "granted"]
    expect(rows.map(({ action }) => action)).toEqual(actions)
  })

  it.each<readonly [string, (memberships: Promises["memberships"]) => Promise<unknown>, object]>([
    [
      "a project that does not exist",
      (m) => m.grant({ projectId: "p9", userId: "1", endDate }),
      { _tag: "ProjectNotFound", projectId: "p9" },
    ],
    [
      "a user without a membership",
      (m) => m.extend({ ...member, endDate }),
      { _tag: "MembershipNotFound", userId: "1001" },
    ],
    ["an invalid user id", (m) => m.find({ ...member, userId: "a b" }), { field: "userId" }],
    ["an invalid project id", (m) => m.createProject("\u0000"), { field: "projectId" }],
    ["an empty project id", (m) => m.createProject(""), { field: "projectId" }],
    [
      "an invalid end date",
      (m) => m.grant({ ...member, endDate: "soon" }),
      { _tag: "InvalidEndDate" },
    ],
    [
      "an end date in the past",
      (m) => m.extend({ ...member, endDate: 1_000_000_000_000 }),
      { _tag: "EndDateNotInFuture" },
    ],
    [
      "a page of no size",
      (m) => m.list({ projectId: "p1", limit: 0 }),
      { _tag: "InvalidInput", field: "limit" },
    ],
    [
      "a history of half a row",
      (m) => m.history({ projectId: "p1", limit: 0.5 }),
      { _tag: "InvalidInput", field: "limit" },
    ],
  ])("are refused with a typed error for %s", async (_name, call, error) => {
    const refusal = await call(tenure.memberships).catch((reason: unknown) => reason)
    expect(refusal).toBeInstanceOf(Error)
    expect(refusal).toMatchObject(error)
    expect(String(refusal)).toMatch(/[a-z]/)
  })
})

describe("API keys", () => {
  it("are issued with a token that is shown once", async () => {
    const { id, token } = await tenure.apiKeys.issue({ projects: ["p1"] })
    expect(token).toMatch(/^tnr_[A-Za-z0-9_-]{43}$/)
    const keys = await tenure.apiKeys.list()
    expect(keys).toMatchObject([{ id, projects: new Set(["p1"]) }])
    expect(JSON.stringify(keys)).not.toContain(token)
  })

  it("tell whose a token is, until they are revoked", async () => {
    const { id, token } = await tenure.apiKeys.issue({ projects: ["p1"] })
    expect(await tenure.apiKeys.authenticate(token)).toMatchObject({ id })
    expect(await tenure.apiKeys.authenticate("no token")).toBeUndefined()
    await tenure.apiKeys.revoke(id)
    expect(await tenure.apiKeys.authenticate(token)).toBeUndefined()
  })

  it("may be issued for a token that clients have already", async () => {
    const issued = await tenure.apiKeys.issue({ projects: ["p1"], token: "mine" })
    expect(issued.token).toBe("mine")
    await tenure.memberships.createProject("p2")
    const again = await tenure.apiKeys.issue({ projects: ["p2"], token: "mine" })
    expect(again.id).toBe(issued.id)
  })

  it.each(["", " a", "a ", "ü", "a\n", "x".repeat(1025)])("have no token %j", async (token) => {
    await expect(tenure.apiKeys.issue({ projects: ["p1"], token })).rejects.toMatchObject({
      _tag: "InvalidInput",
      field: "token",
    })
  })

  it("fail to open a project that does not exist, and to be revoked if there are none", async () => {
    await expect(tenure.apiKeys.issue({ projects: ["p9"] })).rejects.toMatchObject({
      _tag: "ProjectNotFound",
    })
    await expect(tenure.apiKeys.revoke("nobody")).rejects.toMatchObject({
      _tag: "ApiKeyNotFound",
    })
  })
})

describe("events", () => {
  it.each([
    [{ type: "" }, "type"],
    [{ type: "a b" }, "type"],
    [{ type: "a..b" }, "type"],
    [{ type: `a${"b".repeat(128)}` }, "type"],
    [{ data: 1n }, "data"],
    [{ data: undefined }, "data"],
    [{ data: () => 1 }, "data"],
    [{ projectId: "" }, "projectId"],
  ])("of %o are refused", async (fields, field) => {
    const publication = { projectId: "p1", type: "payment.completed", data: {}, ...fields }
    await expect(tenure.events.publish(publication)).rejects.toMatchObject({
      _tag: "InvalidInput",
      field,
    })
  })

  it("need a project", async () => {
    const publication = { projectId: "p9", type: "payment.completed", data: {} }
    await expect(tenure.events.publish(publication)).rejects.toMatchObject({
      _tag: "ProjectNotFound",
    })
  })
})

describe("webhooks", () => {
  it("are created, listed, pinged and deleted", async () => {
    const { webhooks } = tenure
    const url = "https://receiver.example/"
    const created = await webhooks.create({ projectId: "p1", url })
    expect(await webhooks.list({ projectId: "p1" })).toMatchObject([created])
    const webhook = { projectId: "p1", webhookId: created.id }
    expect(await webhooks.ping(webhook)).toMatch(/^[0-9a-f-]{36}$/)
    await webhooks.delete(webhook)
    expect(await webhooks.list({ projectId: "p1" })).toEqual([])
    await expect(webhooks.ping(webhook)).rejects.toMatchObject({ _tag: "WebhookNotFound" })
    await expect(webhooks.delete(webhook)).rejects.toMatchObject({ _tag: "WebhookNotFound" })
  })
})

describe("options", () => {
  it.each<readonly [TenureOptions, string]>([
    [{ basePath: "api" }, "basePath"],
    [{ basePath: "/a b" }, "basePath"],
    [{ webhooks: { timeout: "2 hours" } }, "webhooks.timeout"],
    [
      { rateLimits: { perKey: { limit: 1, window: "366 days", capacity: 2 } } },
      "rateLimits.perKey.capacity",
    ],
    [{ basePath: "/a/../b" }, "basePath"],
    [{ basePath: "/%61" }, "basePath"],
    [{ basePath: "/a?b" }, "basePath"],
    [{ trustedProxies: ["10.0.0.1"] }, "trustedProxies[0]"],
    [{ webhooks: { allowedNetworks: ["localhost"] } }, "webhooks.allowedNetworks[0]"],
    [{ webhooks: { maxPerProject: -1 } }, "webhooks.maxPerProject"],
    [{ webhooks: { timeout: 0 } }, "webhooks.timeout"],
    [{ webhooks: { maxInFlight: 0 } }, "webhooks.maxInFlight"],
    [{ webhooks: { retrySchedule: [5, 6, -1] } }, "webhooks.retrySchedule[2]"],
    [{ maxBodyBytes: 0 }, "maxBodyBytes"],
    [{ rateLimits: { perKey: { limit: 0, window: 1 } } }, "rateLimits.perKey.limit"],
    [{ rateLimits: { suspension: { refusals: 0 } } }, "rateLimits.suspension.refusals"],
  ])("that are wrong are refused by name: %o", async (options, field) => {
    const refusal = createTenure({ ...options, stores: memory() })
    await expect(refusal).rejects.toMatchObject({ _tag: "InvalidInput", field })
  })
})

describe("options of hosts without types", () => {
  /** Options as plain JavaScript may have them. */
  const untyped = (text: string): TenureOptions => JSON.parse(text)

  it.each([
    ['{"basepath":"/x"}', "basepath"],
    ['{"rateLimits":{"key":{}}}', "rateLimits.key"],
    ['{"webhooks":{"timeoutMillis":5}}', "webhooks.timeoutMillis"],
    ['{"bulk":"never"}', "bulk"],
    ['{"userIds":"any"}', "userIds"],
    ['{"userIds":{}}', "userIds"],
    ['{"onEvent":"log"}', "onEvent"],
    ['{"onError":{}}', "onError"],
    ['{"onResponse":1}', "onResponse"],
    ['{"authenticate":true}', "authenticate"],
    ['{"trustedProxies":"10.0.0.0/8"}', "trustedProxies"],
    ['{"rateLimits":{"onStoreFailure":"opened"}}', "rateLimits.onStoreFailure"],
    ['{"rateLimits":{"perKey":{"limit":"100","window":"1 minute"}}}', "rateLimits.perKey.limit"],
    ['{"webhooks":{"requireHttps":"yes"}}', "webhooks.requireHttps"],
    ['{"webhooks":{"retrySchedule":5}}', "webhooks.retrySchedule"],
    ['{"webhooks":{"allowedNetworks":{}}}', "webhooks.allowedNetworks"],
    ['{"keyCacheTtl":"soon"}', "keyCacheTtl"],
    ['{"transport":{}}', "transport"],
    ['{"basePath":5}', "basePath"],
    ['{"trustedProxies":[5]}', "trustedProxies[0]"],
    ['{"rateLimits":null}', "rateLimits"],
    ['{"webhooks":5}', "webhooks"],
    ['{"webhooks":null}', "webhooks"],
    ['{"rateLimits":{"suspension":{"refusal":3}}}', "rateLimits.suspension.refusal"],
    ['{"rateLimits":{"suspension":true}}', "rateLimits.suspension"],
    ['{"rateLimits":{"perKey":{"capacty":5}}}', "rateLimits.perKey.capacty"],
    ['{"rateLimits":{"perKey":{"limit":5}}}', "rateLimits.perKey.window"],
    ['{"webhooks":{"timeout":"15s"}}', "webhooks.timeout"],
    ['{"webhooks":{"timeout":{"secnds":15}}}', "webhooks.timeout"],
  ])("%s is refused by name", async (text, field) => {
    const refusal = createTenure({ ...untyped(text), stores: memory() })
    await expect(refusal).rejects.toMatchObject({ _tag: "InvalidInput", field })
  })
})

describe("userIds", () => {
  it.each<readonly [TenureOptions["userIds"], ReadonlyArray<string>, ReadonlyArray<string>]>([
    ["text", ["cus_NffrFeUfNV2Hib", "ada@example.com", "7"], ["a b", "ü", "", ".", ".."]],
    ["digits", ["7", "07"], ["-7", "1e3", "ada"]],
    [/^user_/g, ["user_1", "user_2"], ["cus_1", "a user_1"]],
  ])("is %s", async (userIds, good, bad) => {
    const { memberships, close } = await createTenure({ stores: memory(), userIds })
    await memberships.createProject("p1")
    for (const userId of good) {
      await memberships.grant({ projectId: "p1", userId, endDate })
      await memberships.import({ projectId: "p1", memberships: [{ userId, endDate }] })
    }
    for (const userId of bad) {
      await expect(memberships.grant({ projectId: "p1", userId, endDate })).rejects.toMatchObject({
        _tag: "InvalidInput",
        field: "userId",
      })
      const listed = [{ userId, endDate }]
      await expect(
        memberships.import({ projectId: "p1", memberships: listed }),
      ).rejects.toMatchObject({ _tag: "InvalidInput", field: "memberships[0].userId" })
    }
    const page = await memberships.list({ projectId: "p1" })
    expect(page.map(({ userId }) => userId)).toEqual(good.toSorted())
    await close()
  })
})

describe("an invalid option", () => {
  const messageOf = async (options: TenureOptions): Promise<string> =>
    createTenure({ ...options, stores: memory() }).then(
      () => "no error",
      (error: unknown) => (error instanceof Error ? error.message : "no Error"),
    )

  it.each([
    [
      '{"webhooks":{"timeout":"15s"}}',
      'webhooks.timeout must be a duration from 1 millisecond to 1 hour, such as "15 seconds"; received "15s"',
    ],
    [
      '{"webhooks":{"retrySchedule":[1,2,"soon"]}}',
      'webhooks.retrySchedule[2] must be a duration from 0 milliseconds to 30 days, such as "15 seconds"; received "soon"',
    ],
    [
      '{"rateLimits":{"perKey":{"limit":5}}}',
      'rateLimits.perKey.window is missing: it must be a duration from 1 millisecond to 366 days, such as "15 seconds"',
    ],
    [
      '{"rateLimits":{"suspension":{"refusal":3}}}',
      "rateLimits.suspension.refusal is unknown: known are refusals, within, duration",
    ],
    ['{"bulk":"never"}', 'bulk must be one of "set", "neverShorten"; received "never"'],
    ['{"webhooks":null}', "webhooks must be an object; received null"],
    ['{"webhooks":{"retrySchedule":5}}', "webhooks.retrySchedule must be an array; received 5"],
    [
      '{"maxBodyBytes":"64 KiB"}',
      'maxBodyBytes must be a whole number from 1 to 1,000,000,000; received "64 KiB"',
    ],
    ['{"onEvent":{}}', "onEvent must be a function; received an object"],
    [
      '{"trustedProxies":["10.0.0.1"]}',
      'trustedProxies[0] must be a network in CIDR notation, such as "10.0.0.0/8"; received "10.0.0.1"',
    ],
  ])("such as %s says what would be right", async (options, message) => {
    expect(await messageOf(JSON.parse(options))).toBe(message)
  })
})

describe("stores", () => {
  it.each(["{}", "[]", "[1]", "null"])("cannot be %s", async (text) => {
    const stores = JSON.parse(text)
    await expect(createTenure({ stores })).rejects.toMatchObject({
      _tag: "InvalidInput",
      field: "stores",
    })
  })

  it("are required", async () => {
    // @ts-expect-error: plain JavaScript does not notice.
    await expect(createTenure()).rejects.toMatchObject({
      _tag: "InvalidInput",
      field: "stores",
      message: expect.stringContaining("memory()"),
    })
  })

  it("may be an array, in which a later one replaces the ports of an earlier", async () => {
    const calls: Array<string> = []
    const limits = (name: string) =>
      Layer.succeed(RateLimitStore, {
        ping: Effect.void,
        take: () => {
          calls.push(name)
          return Effect.fail(new StoreUnavailable({ cause: name }))
        },
      })
    const made = await createTenure({ stores: [memory(), limits("first"), limits("second")] })
    const { handle } = made
    await handle(listing)
    expect(calls).toEqual(["second"])
    await made.memberships.createProject("p1")
    await made.close()
  })

  it("of an array may use the ports of those before them", async () => {
    const renaming = Layer.effect(
      MembershipStore,
      Effect.map(MembershipStore, (store) => ({
        ...store,
        createProject: (id: ProjectId, occasion: ChangeContext) =>
          store.createProject(ProjectId(`my-${id}`), occasion),
      })),
    )
    const made = await createTenure({ stores: [memory(), renaming] })
    await made.memberships.createProject("p1")
    expect(await made.memberships.list({ projectId: "my-p1" })).toEqual([])
    await made.close()
  })
})

describe("two of them", () => {
  it("share nothing, even if they were made of the same stores", async () => {
    const stores = memory()
    const [one, other] = await Promise.all([createTenure({ stores }), createTenure({ stores })])
    await one.memberships.createProject("p1")
    await expect(other.webhooks.list({ projectId: "p1" })).rejects.toMatchObject({
      _tag: "ProjectNotFound",
    })
    await Promise.all([one.close(), other.close()])
  })
})

describe("a response", () => {
  it("is delivered before the call returns if nothing waits", () => {
    const delivered: Array<number> = []
    tenure.answer(listing, ({ status }) => delivered.push(status))
    expect(delivered).toEqual([401])
  })

  it("is delivered later if something waits", async () => {
    const made = await createTenure({ stores: memory(), authenticate: async () => undefined })
    const delivered: Array<number> = []
    await new Promise<void>((resolve) => {
      made.answer(listing, ({ status }) => {
        delivered.push(status)
        resolve()
      })
      expect(delivered).toEqual([])
    })
    expect(delivered).toEqual([401])
    await made.close()
  })

  it("comes even if the store interrupts the request", async () => {
    const interrupting = Layer.succeed(RateLimitStore, {
      ping: Effect.void,
      take: () =>
        Effect.withFiber((fiber) => {
          fiber.interruptUnsafe()
          return Effect.never
        }),
    })
    const made = await createTenure({ stores: [memory(), interrupting] })
    expect(await made.handle(listing)).toMatchObject({ status: 500 })
    await made.close()
  })
})

describe("closing", () => {
  it("waits for what is under way", async () => {
    let open = () => {}
    const gate = new Promise<undefined>((resolve) => {
      open = () => resolve(undefined)
    })
    const slow = await createTenure({ stores: memory(), authenticate: () => gate })
    const order: Array<string> = []
    const answered = slow.handle(listing).then(() => order.push("answered"))
    const closed = slow.close().then(() => order.push("closed"))
    open()
    await Promise.all([answered, closed])
    expect(order).toEqual(["answered", "closed"])
  })

  it("refuses calls at once that begin while it waits for others, which it does not cut off", async () => {
    let open = () => {}
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    const gated = Layer.effect(
      MembershipStore,
      Effect.map(MembershipStore, (store) => ({
        ...store,
        find: (projectId, userId) =>
          Effect.andThen(
            Effect.promise(() => gate),
            store.find(projectId, userId),
          ),
      })),
    )
    const stores = memory()
    let writes = 0
    const counted = Layer.effect(
      MembershipStore,
      Effect.map(MembershipStore, (store) => ({
        ...store,
        grant: (change) => Effect.suspend(() => (writes++, store.grant(change))),
      })),
    )
    const made = await createTenure({ stores: [stores, gated, counted] })
    await made.memberships.createProject("p1")
    await made.memberships.grant({ ...member, endDate })
    const order: Array<string> = []
    const begun = made.memberships.find(member).finally(() => order.push("found"))
    const closed = made.close().then(() => order.push("closed"))
    const late = made.memberships.grant({ ...member, endDate })
    await expect(late).rejects.toMatchObject({
      _tag: "StoreUnavailable",
      message: "Tenure is closing, and has not made the call.",
    })
    expect(await made.handle(listing)).toMatchObject({ status: 503 })
    expect(await made.isReady()).toBe(false)
    expect([writes, order]).toEqual([1, []])
    open()
    expect(await begun).toMatchObject(member)
    await closed
    expect(order).toEqual(["found", "closed"])
  })

  it("can be repeated, and is done once for all calls", async () => {
    const order: Array<string> = []
    let open = () => {}
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    const releasing = Layer.effectDiscard(
      Effect.addFinalizer(() =>
        Effect.promise(async () => {
          await gate
          order.push("released")
        }),
      ),
    )
    const made = await createTenure({ stores: [memory(), releasing] })
    const calls = [made.close(), made.close()].map((call) => call.then(() => order.push("closed")))
    open()
    await Promise.all(calls)
    await made.close()
    expect(order).toEqual(["released", "closed", "closed"])
  })

  it("leaves a store behind that does not close", async () => {
    const stuck = Layer.effectDiscard(Effect.addFinalizer(() => Effect.never))
    const made = await createTenure({ stores: [memory(), stuck] })
    vi.useFakeTimers()
    try {
      const closed = made.close()
      await vi.advanceTimersByTimeAsync(5000)
      await closed
    } finally {
      vi.useRealTimers()
    }
  })

  it("happens by itself if the stores cannot be set up", async () => {
    let isReleased = false
    const failing = Layer.effectDiscard(
      Effect.andThen(
        Effect.addFinalizer(() => Effect.sync(() => (isReleased = true))),
        Effect.fail("no database"),
      ),
    )
    await expect(createTenure({ stores: [memory(), failing] })).rejects.toBe("no database")
    expect(isReleased).toBe(true)
  })
})

describe("within", () => {
  const connection = { query: async () => ({ rows: [] }) }

  it("throws if the stores cannot work in transactions of the host", async () => {
    const made = await createTenure({ stores: memory() })
    expect(() => made.within(connection)).toThrow("postgres() of tenure/postgres can")
    await made.close()
  })

  it("calls the services in the transaction of a store that can", async () => {
    let calls = 0
    const counting = Layer.succeed(Transactions, {
      within: () => (work) =>
        Effect.andThen(
          Effect.sync(() => calls++),
          work,
        ),
      afterCommit: (_eventId, effect) => effect,
    })
    const made = await createTenure({ stores: Layer.merge(memory(), counting) })
    await made.within(connection).memberships.createProject("p1")
    await made.memberships.findProject("p1")
    expect(calls).toBe(1)
    await made.close()
    const late = made.within(connection).memberships.findProject("p1")
    await expect(late).rejects.toThrow(StoreUnavailable)
  })
})
