import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest"
import type { ChangeContext } from "../src/base/change-context.ts"
import { StoreUnavailable } from "../src/base/errors.ts"
import { ErrorReporter } from "../src/base/faults.ts"
import { Transactions } from "../src/base/transactions.ts"
import { ProjectId } from "../src/base/values.ts"
import { emptyBody } from "../src/http/request.ts"
import { RateLimitStore } from "../src/limits/buckets.ts"
import { MembershipStore } from "../src/memberships/store.ts"
import {
  type CreateTenureOptions,
  type Tenure,
  type TenureOptions,
  createTenure,
} from "../src/tenure.ts"

const endDate = "2099-01-01T00:00:00.000Z"
const project = { projectId: "p1" }
const member = { ...project, userId: "1001" }

const listing = {
  method: "GET",
  path: "/v2/projects/p1/integrations/webhooks",
  headers: {},
  body: emptyBody,
  remoteAddress: undefined,
}

/** Makes another instance, closed after the test. */
const made = async (options: Partial<CreateTenureOptions> = {}): Promise<Tenure> => {
  const other = await createTenure({ stores: memory(), ...options })
  onTestFinished(other.close)
  return other
}

type Store = MembershipStore["Service"]

/** Returns a membership store with some operations replaced. */
const replacing = (change: (store: Store) => Partial<Store>) =>
  Layer.effect(
    MembershipStore,
    Effect.map(MembershipStore, (store) => ({ ...store, ...change(store) })),
  )

/** Returns a gate and a function to open it. */
const gate = () => {
  let open = (): void => {}
  const passed = new Promise<undefined>((resolve) => {
    open = () => resolve(undefined)
  })
  return { open, passed }
}

let tenure: Tenure

beforeEach(async () => {
  tenure = await createTenure({ stores: memory() })
  await tenure.memberships.createProject("p1")
})

afterEach(() => tenure.close())

describe("the services", () => {
  it("grant, read, list, extend and end memberships", async () => {
    const { memberships } = tenure
    const granted = await memberships.grant({ ...member, endDate: "2001-01-01T00:00:00.000Z" })
    const expired = { ...granted, state: "expired" }
    expect(await memberships.find(member)).toEqual(expired)
    expect(await memberships.list(project)).toEqual([expired])
    const extended = await memberships.extend({ ...member, endDate })
    expect(extended).toEqual({ ...member, endDate: Date.parse(endDate) })
    const metadata = { plan: "gold" }
    const found = { ...extended, metadata, state: "active" }
    expect(await memberships.update({ ...member, metadata })).toEqual(found)
    expect(await memberships.find(member)).toEqual(found)
    const bulk = await memberships.extendAll({ ...project, endDate: 4_102_444_800_000 })
    expect(bulk).toEqual({ endDate: 4_102_444_800_000, total: 1 })
    await memberships.end(member)
    await expect(memberships.find(member)).rejects.toMatchObject({ _tag: "MembershipNotFound" })
    const actions = ["ended", "bulk_extended", "updated", "extended", "granted"]
    expect(await memberships.history(member)).toMatchObject(actions.map((action) => ({ action })))
  })

  it("issue API keys with a token that is shown once, and say whose it is until they are revoked", async () => {
    const { apiKeys } = tenure
    const { id, token } = await apiKeys.issue({ projects: ["p1"] })
    expect(token).toMatch(/^tnr_[A-Za-z0-9_-]{43}$/)
    const keys = await apiKeys.list()
    expect(keys).toMatchObject([{ id, projects: new Set(["p1"]) }])
    expect(JSON.stringify(keys)).not.toContain(token)
    expect(await apiKeys.authenticate(token)).toMatchObject({ id })
    expect(await apiKeys.authenticate("no token")).toBeUndefined()
    await apiKeys.revoke(id)
    expect(await apiKeys.authenticate(token)).toBeUndefined()
  })

  it("issue API keys for a token that clients have already", async () => {
    const issued = await tenure.apiKeys.issue({ projects: ["p1"], token: "mine" })
    expect(issued.token).toBe("mine")
    await tenure.memberships.createProject("p2")
    const again = await tenure.apiKeys.issue({ projects: ["p2"], token: "mine" })
    expect(again.id).toBe(issued.id)
  })

  it("create, list, ping and delete webhooks", async () => {
    const { webhooks } = tenure
    const created = await webhooks.create({ ...project, url: "https://receiver.example/" })
    expect(await webhooks.list(project)).toMatchObject([created])
    const webhook = { ...project, webhookId: created.id }
    expect(await webhooks.ping(webhook)).toMatch(/^[0-9a-f-]{36}$/)
    await webhooks.delete(webhook)
    expect(await webhooks.list(project)).toEqual([])
    await expect(webhooks.ping(webhook)).rejects.toMatchObject({ _tag: "WebhookNotFound" })
    await expect(webhooks.delete(webhook)).rejects.toMatchObject({ _tag: "WebhookNotFound" })
  })

  const publishing = (fields: object) => (services: Tenure) =>
    services.events.publish({ ...project, type: "payment.completed", data: {}, ...fields })
  const issuing = (fields: object) => (services: Tenure) =>
    services.apiKeys.issue({ projects: ["p1"], ...fields })

  it.each<readonly [string, (services: Tenure) => Promise<unknown>, object]>([
    [
      "a project that does not exist",
      ({ memberships }) => memberships.grant({ projectId: "p9", userId: "1", endDate }),
      { _tag: "ProjectNotFound", projectId: "p9" },
    ],
    [
      "a user without a membership",
      ({ memberships }) => memberships.extend({ ...member, endDate }),
      { _tag: "MembershipNotFound", userId: "1001" },
    ],
    [
      "an invalid user id",
      ({ memberships }) => memberships.find({ ...member, userId: "a b" }),
      { field: "userId" },
    ],
    ...["\u0000", ""].map(
      (id) =>
        [
          `the project id ${JSON.stringify(id)}`,
          ({ memberships }: Tenure) => memberships.createProject(id),
          { field: "projectId" },
        ] as const,
    ),
    [
      "a history of half a row",
      ({ memberships }) => memberships.history({ ...project, limit: 0.5 }),
      { _tag: "InvalidInput", field: "limit" },
    ],
    [
      "a key of a project that does not exist",
      issuing({ projects: ["p9"] }),
      { _tag: "ProjectNotFound" },
    ],
    ["no key to revoke", ({ apiKeys }) => apiKeys.revoke("nobody"), { _tag: "ApiKeyNotFound" }],
    ...["", " a", "a ", "ü", "a\n", "x".repeat(1025)].map(
      (token) =>
        [
          `the token ${JSON.stringify(token).slice(0, 9)}`,
          issuing({ token }),
          { _tag: "InvalidInput", field: "token" },
        ] as const,
    ),
    ["an event of nowhere", publishing({ projectId: "p9" }), { _tag: "ProjectNotFound" }],
    ["an event of no project", publishing({ projectId: "" }), { field: "projectId" }],
    ...["", "a b", "a..b", `a${"b".repeat(128)}`].map(
      (type) => [`an event of the type ${type}`, publishing({ type }), { field: "type" }] as const,
    ),
    ...[1n, undefined, () => 1].map(
      (data) => [`an event with ${String(data)}`, publishing({ data }), { field: "data" }] as const,
    ),
  ])("refuse with a typed error: %s", async (_name, call, error) => {
    const refusal = await call(tenure).catch((reason: unknown) => reason)
    expect(refusal).toBeInstanceOf(Error)
    expect(refusal).toMatchObject(error)
    expect(String(refusal)).toMatch(/[a-z]/)
  })
})

describe("options", () => {
  // As plain JavaScript may have them.
  it.each([
    ['{"basepath":"/x"}', "basepath is unknown: known are "],
    ['{"basePath":"api"}', "basePath "],
    ['{"basePath":"/a b"}', "basePath "],
    ['{"basePath":"/a/../b"}', "basePath "],
    ['{"basePath":"/%61"}', "basePath "],
    ['{"basePath":"/a?b"}', "basePath "],
    ['{"basePath":5}', "basePath "],
    ['{"bulk":"never"}', 'bulk must be one of "set", "neverShorten"; received "never"'],
    ['{"userIds":"any"}', "userIds "],
    ['{"userIds":{}}', "userIds "],
    ['{"onEvent":{}}', "onEvent must be a function; received an object"],
    ['{"onError":{}}', "onError "],
    ['{"onResponse":1}', "onResponse "],
    ['{"authenticate":true}', "authenticate "],
    ['{"trustedProxies":"10.0.0.0/8"}', "trustedProxies "],
    [
      '{"trustedProxies":["10.0.0.1"]}',
      'trustedProxies[0] must be a network in CIDR notation, such as "10.0.0.0/8"; received "10.0.0.1"',
    ],
    [
      '{"maxBodyBytes":"64 KiB"}',
      'maxBodyBytes must be a whole number from 1 to 1,000,000,000; received "64 KiB"',
    ],
    ['{"trustedProxies":[5]}', "trustedProxies[0] "],
    ['{"maxBodyBytes":0}', "maxBodyBytes "],
    ['{"keyCacheTtl":"soon"}', "keyCacheTtl "],
    ['{"transport":{}}', "transport "],
    ['{"rateLimits":null}', "rateLimits "],
    ['{"rateLimits":{"key":{}}}', "rateLimits.key "],
    ['{"rateLimits":{"onStoreFailure":"opened"}}', "rateLimits.onStoreFailure "],
    ['{"rateLimits":{"perKey":{"capacty":5}}}', "rateLimits.perKey.capacty "],
    ['{"rateLimits":{"perKey":{"limit":0,"window":1}}}', "rateLimits.perKey.limit "],
    ['{"rateLimits":{"perKey":{"limit":"100","window":"1 minute"}}}', "rateLimits.perKey.limit "],
    [
      '{"rateLimits":{"perKey":{"limit":5}}}',
      'rateLimits.perKey.window is missing: it must be a duration from 1 millisecond to 366 days, such as "15 seconds"',
    ],
    [
      '{"rateLimits":{"perKey":{"limit":1,"window":"366 days","capacity":2}}}',
      "rateLimits.perKey.capacity ",
    ],
    [
      '{"rateLimits":{"suspension":{"refusal":3}}}',
      "rateLimits.suspension.refusal is unknown: known are refusals, within, duration",
    ],
    ['{"rateLimits":{"suspension":{"refusals":0}}}', "rateLimits.suspension.refusals "],
    ['{"rateLimits":{"suspension":true}}', "rateLimits.suspension "],
    ['{"webhooks":5}', "webhooks "],
    ['{"webhooks":null}', "webhooks must be an object; received null"],
    ['{"webhooks":{"timeoutMillis":5}}', "webhooks.timeoutMillis "],
    ['{"webhooks":{"requireHttps":"yes"}}', "webhooks.requireHttps "],
    ['{"webhooks":{"allowedNetworks":{}}}', "webhooks.allowedNetworks "],
    ['{"webhooks":{"allowedNetworks":["localhost"]}}', "webhooks.allowedNetworks[0] "],
    ['{"webhooks":{"maxPerProject":-1}}', "webhooks.maxPerProject "],
    ['{"webhooks":{"maxInFlight":0}}', "webhooks.maxInFlight "],
    [
      '{"webhooks":{"timeout":"15s"}}',
      'webhooks.timeout must be a duration from 1 millisecond to 1 hour, such as "15 seconds"; received "15s"',
    ],
    ['{"webhooks":{"timeout":"2 hours"}}', "webhooks.timeout "],
    ['{"webhooks":{"timeout":0}}', "webhooks.timeout "],
    ['{"webhooks":{"timeout":{"secnds":15}}}', "webhooks.timeout "],
    ['{"webhooks":{"retrySchedule":[5,6,-1]}}', "webhooks.retrySchedule[2] "],
    ['{"webhooks":{"retrySchedule":5}}', "webhooks.retrySchedule must be an array; received 5"],
    [
      '{"webhooks":{"retrySchedule":[1,2,"soon"]}}',
      'webhooks.retrySchedule[2] must be a duration from 0 milliseconds to 30 days, such as "15 seconds"; received "soon"',
    ],
  ])("that are wrong are refused by name: %s", async (text, problem) => {
    const options: TenureOptions = JSON.parse(text)
    const [field = ""] = problem.split(" ")
    const refusal = createTenure({ ...options, stores: memory() })
    await expect(refusal).rejects.toMatchObject({
      _tag: "InvalidInput",
      field,
      message: expect.toSatisfy((message) => String(message).startsWith(problem)),
    })
  })

  it.each<readonly [TenureOptions["userIds"], ReadonlyArray<string>, ReadonlyArray<string>]>([
    ["text", ["cus_NffrFeUfNV2Hib", "ada@example.com", "7"], ["a b", "ü", "", ".", ".."]],
    ["digits", ["7", "07"], ["-7", "1e3", "ada"]],
    [/^user_/g, ["user_1", "user_2"], ["cus_1", "a user_1"]],
  ])("say which user ids there may be: %s", async (userIds, good, bad) => {
    const { memberships } = await made({ userIds })
    await memberships.createProject("p1")
    const calls = (userId: string) => [
      memberships.grant({ ...project, userId, endDate }),
      memberships.import({ ...project, memberships: [{ userId, endDate }] }),
    ]
    for (const userId of good) await Promise.all(calls(userId))
    for (const userId of bad) {
      const fields = ["userId", "memberships[0].userId"]
      expect(await Promise.allSettled(calls(userId))).toMatchObject(
        fields.map((field) => ({ reason: { _tag: "InvalidInput", field } })),
      )
    }
    const page = await memberships.list(project)
    expect(page.map(({ userId }) => userId)).toEqual(good.toSorted())
  })
})

describe("stores", () => {
  it("report faults to onError", async () => {
    const onError = vi.fn<NonNullable<TenureOptions["onError"]>>()
    const faulty = Layer.effectDiscard(
      Effect.flatMap(ErrorReporter, ({ failure }) => failure("A store has a fault", "a cause")),
    )
    await made({ stores: [memory(), faulty], onError })
    expect(onError).toHaveBeenCalledExactlyOnceWith({
      message: "A store has a fault",
      cause: "a cause",
      requestId: undefined,
      isDefect: false,
    })
  })

  it.each(["{}", "[]", "[1]", "null"])("cannot be %s", async (text) => {
    const refusal = createTenure({ stores: JSON.parse(text) })
    await expect(refusal).rejects.toMatchObject({ _tag: "InvalidInput", field: "stores" })
  })

  it("are required", async () => {
    const message = expect.stringContaining("memory()")
    // @ts-expect-error: plain JavaScript does not notice.
    await expect(createTenure()).rejects.toMatchObject({ field: "stores", message })
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
    const { handle, memberships } = await made({
      stores: [memory(), limits("first"), limits("second")],
    })
    await handle(listing)
    expect(calls).toEqual(["second"])
    await memberships.createProject("p1")
  })

  it("of an array may use the ports of those before them", async () => {
    const renaming = replacing((store) => ({
      createProject: (id: ProjectId, context: ChangeContext) =>
        store.createProject(ProjectId(`my-${id}`), context),
    }))
    const { memberships } = await made({ stores: [memory(), renaming] })
    await memberships.createProject("p1")
    expect(await memberships.list({ projectId: "my-p1" })).toEqual([])
  })

  it("are shared by nobody, even if two are made of the same", async () => {
    const stores = memory()
    const [one, other] = await Promise.all([made({ stores }), made({ stores })])
    await one.memberships.createProject("p1")
    const missing = { _tag: "ProjectNotFound" }
    await expect(other.webhooks.list(project)).rejects.toMatchObject(missing)
  })
})

describe("a response", () => {
  it("is delivered before the call returns if nothing waits", () => {
    const delivered: Array<number> = []
    tenure.answer(listing, ({ status }) => delivered.push(status))
    expect(delivered).toEqual([401])
  })

  it("is delivered later if something waits", async () => {
    const { answer } = await made({ authenticate: async () => undefined })
    const delivered: Array<number> = []
    await new Promise<void>((resolve) => {
      answer(listing, ({ status }) => {
        delivered.push(status)
        resolve()
      })
      expect(delivered).toEqual([])
    })
    expect(delivered).toEqual([401])
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
    const { handle } = await made({ stores: [memory(), interrupting] })
    expect(await handle(listing)).toMatchObject({ status: 500 })
  })
})

describe("closing", () => {
  it("waits for what is under way", async () => {
    const { open, passed } = gate()
    const slow = await made({ authenticate: () => passed })
    const order: Array<string> = []
    const answered = slow.handle(listing).then(() => order.push("answered"))
    const closed = slow.close().then(() => order.push("closed"))
    open()
    await Promise.all([answered, closed])
    expect(order).toEqual(["answered", "closed"])
  })

  it("refuses calls at once that begin while it waits for others, which it does not cut off", async () => {
    const { open, passed } = gate()
    let writes = 0
    const gated = replacing((store) => ({
      find: (...asked) =>
        Effect.andThen(
          Effect.promise(() => passed),
          store.find(...asked),
        ),
      grant: (change) => Effect.suspend(() => (writes++, store.grant(change))),
    }))
    const closing = await made({ stores: [memory(), gated] })
    await closing.memberships.createProject("p1")
    await closing.memberships.grant({ ...member, endDate })
    const order: Array<string> = []
    const begun = closing.memberships.find(member).finally(() => order.push("found"))
    const closed = closing.close().then(() => order.push("closed"))
    const late = closing.memberships.grant({ ...member, endDate })
    await expect(late).rejects.toMatchObject({
      _tag: "StoreUnavailable",
      message: "Tenure is closing, and has not made the call.",
    })
    expect(await closing.handle(listing)).toMatchObject({ status: 503 })
    expect(await closing.isReady()).toBe(false)
    expect([writes, order]).toEqual([1, []])
    open()
    expect(await begun).toMatchObject(member)
    await closed
    expect(order).toEqual(["found", "closed"])
  })

  it("can be repeated, and is done once for all calls", async () => {
    const order: Array<string> = []
    const { open, passed } = gate()
    const releasing = Layer.effectDiscard(
      Effect.addFinalizer(() => Effect.promise(() => passed.then(() => order.push("released")))),
    )
    const { close } = await made({ stores: [memory(), releasing] })
    const calls = [close(), close()].map((call) => call.then(() => order.push("closed")))
    open()
    await Promise.all(calls)
    await close()
    expect(order).toEqual(["released", "closed", "closed"])
  })

  it("leaves a store behind that does not close", async () => {
    const stuck = Layer.effectDiscard(Effect.addFinalizer(() => Effect.never))
    const { close } = await createTenure({ stores: [memory(), stuck] })
    vi.useFakeTimers()
    try {
      const closed = close()
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

  it("throws if the stores cannot work in transactions of the host", () => {
    expect(() => tenure.within(connection)).toThrow("postgres() of tenure/postgres can")
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
    const { close, memberships, within } = await made({ stores: Layer.merge(memory(), counting) })
    await within(connection).memberships.createProject("p1")
    await memberships.findProject("p1")
    expect(calls).toBe(1)
    await close()
    const late = within(connection).memberships.findProject("p1")
    await expect(late).rejects.toThrow(StoreUnavailable)
  })
})
