/** The plugin in Better Auth itself, with its memory adapter, its API and its client. */

import { StoreUnavailable, type Tenure } from "@tenure/core"
import { testTenure } from "@tenure/testing"
import { type BetterAuthOptions, betterAuth } from "better-auth"
import { memoryAdapter } from "better-auth/adapters/memory"
import { createAuthClient } from "better-auth/client"
import { InferServerPlugin } from "better-auth/client/plugins"
import { admin, anonymous, twoFactor } from "better-auth/plugins"
import { describe, expect, expectTypeOf, it, onTestFinished } from "vitest"
import {
  type MembershipPluginOptions,
  type SessionMembership,
  membershipPlugin,
} from "../src/index.ts"

const day = 86_400_000
const lastDate = new Date("9999-12-31T23:59:59.999Z")
const ada = { name: "Ada", email: "ada@example.com", password: "correct horse battery staple" }

/** In place of a hash that is slow on purpose. */
const passwords = {
  hash: async (plain: string) => `hash of ${plain}`,
  verify: async (given: { readonly hash: string; readonly password: string }) =>
    given.hash === `hash of ${given.password}`,
}

type Method = keyof Tenure["memberships"]

/** Tenure, whose methods can be made to fail, or to wait for something. */
const startTenure = async () => {
  const { close, tenure } = await testTenure({ start: new Date() })
  onTestFinished(close)
  await tenure.memberships.createProject("p1")
  await tenure.memberships.createProject("p2")
  let isDown = false
  const before = new Map<Method, () => Promise<unknown>>()
  const wrapped =
    <Args extends ReadonlyArray<unknown>, Value>(
      method: Method,
      call: (...args: Args) => Promise<Value>,
    ) =>
    async (...args: Args): Promise<Value> => {
      if (isDown) throw new StoreUnavailable({ cause: "a test" })
      const first = before.get(method)
      before.delete(method)
      await first?.()
      return call(...args)
    }
  const { memberships } = tenure
  return {
    memberships,
    /** Runs before the plugin's next call to a method. */
    beforeNext: (method: Method, run: () => Promise<unknown>) => void before.set(method, run),
    setDown: (down: boolean) => {
      isDown = down
    },
    tenure: {
      isReady: async () => !isDown,
      memberships: {
        ...memberships,
        find: wrapped("find", memberships.find),
        grant: wrapped("grant", memberships.grant),
        history: wrapped("history", memberships.history),
        end: wrapped("end", memberships.end),
        move: wrapped("move", memberships.move),
        erase: wrapped("erase", memberships.erase),
      },
    },
  }
}

interface SignedIn {
  readonly headers: Headers
  readonly response: { readonly user: { readonly id: string } }
}

/** A user's id, and the session's headers. */
interface Credentials {
  readonly userId: string
  readonly headers: Headers
}

const setUp = async (
  options: Partial<MembershipPluginOptions> = {},
  more: Pick<BetterAuthOptions, "advanced" | "databaseHooks"> = {},
  ofAnonymous: Parameters<typeof anonymous>[0] = {},
) => {
  const on = await startTenure()
  const errors: Array<string> = []
  const users: Array<{ id: string; role?: string }> = []
  const database = { user: users, session: [], account: [], verification: [], twoFactor: [] }
  const auth = betterAuth({
    baseURL: "http://localhost:3000",
    secret: "a secret for tests, which is long enough",
    database: memoryAdapter(database),
    emailAndPassword: { enabled: true, password: passwords },
    user: { deleteUser: { enabled: true } },
    rateLimit: { enabled: false },
    telemetry: { enabled: false },
    logger: { log: (_level, message) => void errors.push(message) },
    plugins: [
      membershipPlugin(on.tenure, { projects: ["p1"], ...options }),
      admin(),
      anonymous(ofAnonymous),
      twoFactor({ skipVerificationOnEnable: true }),
    ],
    ...more,
  })
  const signedIn = ({ headers: answer, response }: SignedIn): Credentials => {
    const cookie = answer
      .getSetCookie()
      .map((text) => text.split(";")[0])
      .join("; ")
    const headers = new Headers({ cookie, origin: "http://localhost:3000" })
    return { userId: response.user.id, headers }
  }
  /** Signs a user up, who may have a session as an anonymous one. */
  const signUp = async (email = ada.email, headers = new Headers()) =>
    signedIn(await auth.api.signUpEmail({ body: { ...ada, email }, headers, returnHeaders: true }))
  const signIn = async (headers: Headers) =>
    signedIn(await auth.api.signInEmail({ body: ada, headers, returnHeaders: true }))
  const signInAnonymously = async () =>
    signedIn(await auth.api.signInAnonymous({ returnHeaders: true }))
  /** Removes a user as an administrator, with another's headers. */
  const removeAs = ({ headers, userId: adminId }: Credentials, userId: string) => {
    for (const user of database.user) if (user.id === adminId) user.role = "admin"
    return auth.api.removeUser({ headers, body: { userId } })
  }
  const actions = async (userId: string, projectId = "p1") =>
    (await on.memberships.history({ projectId, userId })).map(({ action }) => action)
  const endDates = async (userId: string) => {
    const found = ["p1", "p2"].map((projectId) => on.memberships.find({ projectId, userId }))
    const settled = await Promise.allSettled(found)
    return settled.map((one) => (one.status === "fulfilled" ? one.value.endDate : undefined))
  }
  return {
    ...on,
    auth,
    database,
    errors,
    signUp,
    signIn,
    signInAnonymously,
    removeAs,
    grant: (userId: string, endDate: number | Date | null, projectId = "p1") =>
      on.memberships.grant({ projectId, userId, endDate }),
    /** The memberships in a user's session. */
    session: async ({ headers }: Pick<Credentials, "headers">) =>
      (await auth.api.getSession({ headers }))?.memberships,
    actions,
    endDates,
  }
}

const refused = { statusCode: 503 }

const nothing = { graceUntil: null, resumesAt: null }

describe("a session", () => {
  it("has the user's memberships", async () => {
    const { auth, grant, session, signUp } = await setUp({ projects: ["p1", "p2"] })
    const { headers, userId } = await signUp()
    expect(await session({ headers })).toEqual([])
    const endDate = new Date(Date.now() + day)
    await grant(userId, endDate)
    await grant(userId, new Date("2020-01-01"), "p2")
    expect(await auth.api.getSession({ headers })).toMatchObject({
      user: { id: userId, email: ada.email },
      session: { userId },
      memberships: [
        { projectId: "p1", endDate, state: "active", ...nothing },
        { projectId: "p2", endDate: new Date("2020-01-01"), state: "expired", ...nothing },
      ],
    })
    expect(await auth.api.getSession({ headers: new Headers() })).toBeNull()
  })

  it("has memberships in grace, which are active", async () => {
    const { grant, memberships, session, signUp } = await setUp()
    await memberships.updateProject({ projectId: "p1", grace: "P2D" })
    const { headers, userId } = await signUp()
    const endDate = new Date(Date.now() - day)
    await grant(userId, endDate)
    const graceUntil = new Date(endDate.getTime() + 2 * day)
    const inGrace = { ...nothing, projectId: "p1", endDate, state: "active", graceUntil }
    expect(await session({ headers })).toEqual([inGrace])
    await memberships.updateProject({ projectId: "p1", grace: null })
    expect(await session({ headers })).toMatchObject([{ state: "expired", graceUntil: null }])
  })

  it("has paused memberships, which are not active", async () => {
    const { grant, memberships, session, signUp } = await setUp()
    const { headers, userId } = await signUp()
    const endDate = new Date(Date.now() + day)
    await grant(userId, endDate)
    const member = { projectId: "p1", userId }
    await memberships.pause(member)
    const paused = { projectId: "p1", endDate, state: "paused", ...nothing }
    expect(await session({ headers })).toEqual([paused])
    await memberships.resume(member)
    const resumesAt = new Date(Date.now() + 30 * day)
    await memberships.pause({ ...member, until: resumesAt })
    expect(await session({ headers })).toMatchObject([{ state: "paused", resumesAt }])
    await memberships.resume(member)
    expect(await session({ headers })).toMatchObject([{ state: "active", ...nothing }])
  })

  it("has types, with the fields of the host", async () => {
    const { tenure } = await startTenure()
    const options = {
      user: { additionalFields: { plan: { type: "string", required: false } } },
    } satisfies BetterAuthOptions
    const auth = betterAuth({
      ...options,
      plugins: [membershipPlugin(tenure, { projects: ["p1"], options })],
    })
    type Session = NonNullable<Awaited<ReturnType<typeof read>>>
    const read = () => auth.api.getSession({ headers: new Headers() })
    expectTypeOf<Session["memberships"]>().toEqualTypeOf<ReadonlyArray<SessionMembership> | null>()
    expectTypeOf<Session["user"]["plan"]>().toEqualTypeOf<string | null | undefined>()
    expectTypeOf<Session["session"]["token"]>().toEqualTypeOf<string>()
    type Inferred = (typeof auth)["$Infer"]["Session"]["memberships"]
    expectTypeOf<Inferred>().toEqualTypeOf<ReadonlyArray<SessionMembership> | null>()
  })

  it("has null in place of them while Tenure does not answer", async () => {
    const { auth, errors, setDown, signUp } = await setUp()
    const { headers, userId } = await signUp()
    setDown(true)
    expect(await auth.api.getSession({ headers })).toMatchObject({
      user: { id: userId },
      memberships: null,
    })
    expect(errors.join()).toContain(userId)
  })

  it("has null in place of them if Tenure cannot have the user's id", async () => {
    const advanced = { database: { generateId: () => "ada lovelace" } }
    const { session, signUp } = await setUp({ trial: 14 }, { advanced })
    expect(await session(await signUp())).toBeNull()
  })

  it("has them in the client", async () => {
    const { auth, signUp } = await setUp({ trial: 14 })
    const { headers } = await signUp()
    const client = createAuthClient({
      baseURL: "http://localhost:3000",
      plugins: [InferServerPlugin<typeof auth, "tenure">()],
      fetchOptions: {
        customFetchImpl: (input, init) => auth.handler(new Request(input, init)),
        headers: Object.fromEntries(headers),
      },
    })
    const { data } = await client.getSession()
    expectTypeOf(data?.memberships).toEqualTypeOf<
      ReadonlyArray<SessionMembership> | null | undefined
    >()
    expect(data?.memberships).toEqual([
      { projectId: "p1", state: "active", ...nothing, endDate: expect.any(Date) },
    ])
  })
})

describe("a sign-up", () => {
  it("grants a trial from the creation of the user", async () => {
    const { actions, auth, signUp } = await setUp({ trial: 14 })
    const { headers, userId } = await signUp()
    const session = await auth.api.getSession({ headers })
    const created = session?.user.createdAt.getTime() ?? 0
    expect(session?.memberships).toEqual([
      { projectId: "p1", state: "active", ...nothing, endDate: new Date(created + 14 * day) },
    ])
    expect(await actions(userId)).toEqual(["granted"])
  })

  it("grants what a function says", async () => {
    const endDate = new Date(Date.now() + day)
    const { session, signUp } = await setUp({
      projects: ["p1", "p2"],
      trial: ({ email }, projectId) =>
        projectId === "p2" && email === ada.email ? endDate : undefined,
    })
    const granted = [{ projectId: "p2", state: "active", ...nothing, endDate }]
    expect(await session(await signUp())).toEqual(granted)
    expect(await session(await signUp("grace@example.com"))).toEqual([])
  })

  it("succeeds while Tenure does not answer, and grants the trial later, once", async () => {
    let days = 7
    const { actions, endDates, session, setDown, signUp } = await setUp({
      // Each call has another date.
      trial: () => new Date(Date.now() + ++days * day),
    })
    setDown(true)
    const user = await signUp()
    expect(await session(user)).toBeNull()
    setDown(false)
    const sessions = await Promise.all([1, 2, 3, 4].map(() => session(user)))
    const [endDate = 0] = await endDates(user.userId)
    for (const found of sessions) expect(found).toMatchObject([{ endDate: new Date(endDate) }])
    expect(await actions(user.userId)).toEqual(["granted"])
  })

  it("leaves a membership that there is", async () => {
    const generateId = ({ model }: { model: string }) => (model === "user" ? "ada" : "x1")
    const { actions, grant, session, signUp } = await setUp(
      { trial: 14 },
      { advanced: { database: { generateId } } },
    )
    const endDate = new Date("2099-01-01")
    await grant("ada", endDate)
    expect(await session(await signUp())).toMatchObject([{ endDate }])
    expect(await actions("ada")).toEqual(["granted"])
  })

  it.each([
    ["a payment", new Date("2099-01-01")],
    ["somebody for life", null],
  ])("never shortens what %s has granted meanwhile", async (_, endDate) => {
    const { beforeNext, grant, session, setDown, signUp } = await setUp({ trial: 14 })
    setDown(true)
    const user = await signUp()
    setDown(false)
    beforeNext("grant", () => grant(user.userId, endDate))
    const found = { endDate: endDate ?? lastDate, state: "active" }
    expect(await session(user)).toMatchObject([found])
  })

  it("grants no trial anew that somebody has ended, and none that is over", async () => {
    const { memberships, session, signUp } = await setUp({ trial: 14 })
    const user = await signUp()
    await memberships.end({ projectId: "p1", userId: user.userId })
    expect(await session(user)).toEqual([])
    const late = await setUp({ trial: () => new Date("2020-01-01") })
    expect(await late.session(await late.signUp())).toEqual([])
  })

  it("runs the hooks of the host, too", async () => {
    const created: Array<string> = []
    const after = async ({ id }: { id: string }) => void created.push(id)
    const { actions, signUp } = await setUp(
      { trial: 14 },
      { databaseHooks: { user: { create: { after } } } },
    )
    const { userId } = await signUp()
    expect(created).toEqual([userId])
    expect(await actions(userId)).toEqual(["granted"])
  })
})

describe("the deletion of a user", () => {
  const deleteUser = ({ auth }: Awaited<ReturnType<typeof setUp>>, headers: Headers) =>
    auth.api.deleteUser({ headers, body: { password: ada.password } })

  it.each([
    ["end", ["ended", "granted"]],
    ["erase", []],
    ["keep", ["granted"]],
  ] as const)("with %s leaves the actions %j", async (onDelete, expected) => {
    const on = await setUp({ trial: 14, onDelete })
    const { headers, userId } = await on.signUp()
    await deleteUser(on, headers)
    expect(on.database.user).toEqual([])
    expect(await on.actions(userId)).toEqual(expected)
    expect(await on.memberships.list({ projectId: "p1" })).toHaveLength(onDelete === "keep" ? 1 : 0)
  })

  it("succeeds without memberships", async () => {
    const on = await setUp()
    const { headers } = await on.signUp()
    await deleteUser(on, headers)
    expect(on.database.user).toEqual([])
  })

  it.each(["the user", "an administrator"])(
    "by %s is refused while Tenure does not answer, loses nothing, and then ends the memberships",
    async (actor) => {
      const on = await setUp({ trial: 14 })
      const user = await on.signUp()
      const other = await on.signUp("grace@example.com")
      const remove = () =>
        actor === "the user" ? deleteUser(on, user.headers) : on.removeAs(other, user.userId)
      on.setDown(true)
      await expect(remove()).rejects.toMatchObject(refused)
      on.setDown(false)
      expect(await on.session(user)).toHaveLength(1)
      await remove()
      expect(await on.actions(user.userId)).toEqual(["ended", "granted"])
      expect(await on.actions(other.userId)).toEqual(["granted"])
    },
  )

  it("keeps the user if Tenure fails just then", async () => {
    const on = await setUp({ trial: 14 })
    const { headers, userId } = await on.signUp()
    on.beforeNext("end", () => Promise.reject(new StoreUnavailable({ cause: "a test" })))
    await expect(deleteUser(on, headers)).rejects.toMatchObject(refused)
    expect(on.database.user).toMatchObject([{ id: userId }])
    const context = await on.auth.$context
    await context.internalAdapter.deleteUser(userId)
    expect(await on.actions(userId)).toEqual(["ended", "granted"])
    expect(on.database.user).toEqual([])
  })
})

describe("an anonymous user who signs up or in", () => {
  const [in2098, in2099] = [Date.UTC(2098, 0, 1), Date.UTC(2099, 0, 1)]
  const kept = ["moved", "extended", "granted"]

  /** Signs in an anonymous user who has a membership. */
  const setUpMember = async (...options: Parameters<typeof setUp>) => {
    const on = await setUp(...options)
    const { headers, userId } = await on.signInAnonymously()
    await on.grant(userId, in2099)
    return { ...on, headers, userId }
  }

  it.each([
    ["", {}, false, kept, 1],
    [", with plugins in another order", {}, true, kept, 1],
    [", with memberships erased of deleted users", { onDelete: "erase" }, false, [], 1],
    [", with memberships kept of deleted users", { onDelete: "keep" }, false, kept, 1],
    [" and the user", {}, false, kept, 2],
    [" and the user, with plugins in another order", {}, true, kept, 2],
  ] as const)("keeps what was paid for%s", async (_, options, isReversed, actions, users) => {
    const disableDeleteAnonymousUser = users === 2
    const on = await setUp({ trial: 14, ...options }, {}, { disableDeleteAnonymousUser })
    if (isReversed) (await on.auth.$context).options.plugins?.reverse()
    const { headers, userId } = await on.signInAnonymously()
    await on.memberships.extend({ projectId: "p1", userId, endDate: in2099 })
    const linked = await on.signUp(ada.email, headers)
    expect(linked.userId).not.toBe(userId)
    expect(await on.session(linked)).toEqual([
      { projectId: "p1", state: "active", ...nothing, endDate: new Date(in2099) },
    ])
    expect(await on.actions(linked.userId)).toEqual(["moved"])
    expect(await on.actions(userId)).toEqual(actions)
    const ids = on.database.user.map(({ id }) => id)
    expect(ids).toEqual(users === 2 ? [userId, linked.userId] : [linked.userId])
    expect(on.errors).toEqual([])
  })

  it("gets no second trial", async () => {
    let days = 3
    const on = await setUp({ trial: () => new Date(Date.now() + days++ * day) })
    const { headers, userId } = await on.signInAnonymously()
    const [endDate] = await on.endDates(userId)
    const linked = await on.signUp(ada.email, headers)
    await on.session(linked)
    expect(await on.endDates(linked.userId)).toEqual([endDate, undefined])
    expect(await on.actions(linked.userId)).toEqual(["moved"])
  })

  it("gets the first trial as the other user, without a membership before", async () => {
    const on = await setUp({
      projects: ["p1", "p2"],
      trial: (user) =>
        "isAnonymous" in user && user.isAnonymous === true ? undefined : new Date(in2098),
    })
    const { headers, userId } = await on.signInAnonymously()
    await on.grant(userId, in2099, "p2")
    const linked = await on.signUp(ada.email, headers)
    expect(await on.endDates(linked.userId)).toEqual([in2098, in2099])
    expect(await on.actions(linked.userId)).toEqual(["granted"])
    expect(await on.actions(linked.userId, "p2")).toEqual(["moved"])
  })

  it.each([
    [in2098, in2099],
    [in2099, in2098],
  ])("has the later end, of %i and of %i in an account before", async (own, other) => {
    const on = await setUp()
    const existing = await on.signUp()
    await on.grant(existing.userId, other)
    const { headers, userId } = await on.signInAnonymously()
    await on.grant(userId, own)
    const linked = await on.signIn(headers)
    expect(linked.userId).toBe(existing.userId)
    expect(await on.endDates(linked.userId)).toEqual([in2099, undefined])
    expect(await on.endDates(userId)).toEqual([undefined, undefined])
    // The session is gone.
    await on.signIn(headers)
    expect(await on.actions(linked.userId)).toEqual(["moved", "granted"])
  })

  it("leaves it until the second factor is there", async () => {
    const on = await setUpMember()
    const existing = await on.signUp()
    const { password } = ada
    await on.auth.api.enableTwoFactor({ headers: existing.headers, body: { password } })
    const answer = await on.auth.api.signInEmail({ body: ada, headers: on.headers })
    expect(answer).toHaveProperty("twoFactorRedirect", true)
    expect(await on.endDates(on.userId)).toEqual([in2099, undefined])
    expect(await on.actions(existing.userId)).toEqual([])
  })

  it("is refused while Tenure does not answer, and loses nothing", async () => {
    const on = await setUpMember()
    const existing = await on.signUp()
    on.setDown(true)
    await expect(on.signUp("grace@example.com", on.headers)).rejects.toMatchObject(refused)
    await expect(on.signIn(on.headers)).rejects.toMatchObject(refused)
    expect(on.database.user).toHaveLength(2)
    // Others come in.
    await on.signIn(new Headers())
    on.setDown(false)
    expect((await on.signIn(on.headers)).userId).toBe(existing.userId)
    expect(await on.endDates(existing.userId)).toEqual([in2099, undefined])
  })

  it("has the membership still if Tenure fails just then", async () => {
    const on = await setUpMember()
    const fail = async () => {
      on.beforeNext("move", fail)
      throw new StoreUnavailable({ cause: "a test" })
    }
    on.beforeNext("move", fail)
    const linked = await on.signUp(ada.email, on.headers)
    expect(await on.endDates(on.userId)).toEqual([in2099, undefined])
    expect(on.errors.join()).toContain(
      `user ${on.userId} could not be moved to the user ${linked.userId}`,
    )
  })

  it("has a paused membership still, which is logged, and the others move", async () => {
    const on = await setUpMember({ projects: ["p1", "p2"], onDelete: "erase" })
    await on.grant(on.userId, in2098, "p2")
    await on.memberships.pause({ projectId: "p1", userId: on.userId })
    const linked = await on.signUp(ada.email, on.headers)
    expect(await on.endDates(on.userId)).toEqual([in2099, undefined])
    expect(await on.endDates(linked.userId)).toEqual([undefined, in2098])
    expect(on.errors.join()).toContain(
      `user ${on.userId} could not be moved to the user ${linked.userId}`,
    )
    await on.memberships.resume({ projectId: "p1", userId: on.userId })
    await on.memberships.move({ projectId: "p1", userId: on.userId, to: linked.userId })
    expect(await on.session(linked)).toMatchObject([{ state: "active" }, { state: "active" }])
  })

  it("leaves nothing to others: deleted, the membership ends", async () => {
    const on = await setUp({ trial: 14 })
    const first = await on.signInAnonymously()
    await on.auth.api.deleteAnonymousUser({ headers: first.headers })
    expect(await on.actions(first.userId)).toEqual(["ended", "granted"])
    const second = await on.signInAnonymously()
    const other = await on.signUp()
    await on.removeAs(other, second.userId)
    expect(await on.actions(second.userId)).toEqual(["ended", "granted"])
    expect(await on.actions(other.userId)).toEqual(["granted"])
  })
})

describe("the options", () => {
  it.each([
    [{ projects: [] }, "projects"],
    [{ projects: ["p1", "p1"] }, "projects"],
    [{ projects: Array.from({ length: 11 }, (_, index) => `p${index}`) }, "projects"],
    [{ trial: 0 }, "trial"],
    [{ trial: NaN }, "trial"],
    [{ trial: 3651 }, "trial"],
    [{ onDelete: "forget" }, "onDelete"],
    [{ projects: "p1" }, "projects"],
    [{ projects: [".."] }, "projects"],
    [{ options: "none" }, "options"],
  ])("%j are refused", async (options, name) => {
    const { tenure } = await startTenure()
    // @ts-expect-error: as programs without types may pass them
    const make = () => membershipPlugin(tenure, { projects: ["p1"], ...options })
    expect(make).toThrow(`${name} must`)
    expect(make).toThrow(expect.objectContaining({ _tag: "InvalidInput", field: name }))
  })

  it("are refused if one is unknown", async () => {
    const { tenure } = await startTenure()
    // @ts-expect-error: as programs without types may pass it
    expect(() => membershipPlugin(tenure, { projects: ["p1"], trials: 14 })).toThrow(
      "trials is unknown",
    )
  })
})
