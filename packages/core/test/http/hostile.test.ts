/** Arguments passed by mistake, and polluted prototypes. */

import { memory } from "@tenure/memory"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { emptyBody } from "../../src/http/request.ts"
import type { Identity } from "../../src/keys/identity.ts"
import { createTenure } from "../../src/tenure.ts"
import { startApi } from "../support/api.ts"

const webhooks = "/v2/projects/p1/integrations/webhooks"
const extend = "/v2/projects/p1/memberships/1001/extend"
const future = "2099-01-01T00:00:00.000Z"
const uuid = /[\da-f]{8}-[\da-f-]{27}/g

let api: Awaited<ReturnType<typeof startApi>>

beforeEach(async () => {
  api = await startApi({ trustedProxies: ["127.0.0.0/8"] })
  await api.tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: future })
})

afterEach(() => api.tenure.close())

const throwing = (name: string): object =>
  Object.defineProperty({}, name, {
    enumerable: true,
    get: () => {
      throw new Error("a getter")
    },
  })

/** Returns an object that throws whenever a property is read. */
const throwingAlways = (thrown: object): object => {
  const trap = (): never => {
    throw thrown
  }
  return new Proxy({}, { get: trap, getOwnPropertyDescriptor: trap })
}

const whole = { method: "GET", path: webhooks, headers: {}, body: emptyBody }
const posted = { ...whole, method: "POST" }
const proxied = { ...whole, remoteAddress: "127.0.0.1" }
const unreadable = { _tag: "Unreadable", error: throwingAlways(throwing("message")) }

it.each<readonly [string, unknown]>([
  ["undefined", undefined],
  ["null", null],
  ["text", "GET /"],
  ["an empty object", {}],
  ["an array", []],
  ["a request inherited", Object.create(whole)],
  ["no method", { ...whole, method: undefined }],
  ["a BigInt for a method", { ...whole, method: 1n }],
  ["a number for a path", { ...whole, path: 1 }],
  ["no headers", { ...whole, headers: null }],
  ["no body", { ...whole, body: undefined }],
  ["a body of no kind", { ...whole, body: {} }],
  ["a body of an unknown kind", { ...posted, body: { _tag: "Other" } }],
  ["bytes that are none", { ...posted, body: { _tag: "Bytes" } }],
  ["an error without text", { ...whole, body: { _tag: "Unreadable" } }],
  ["getters of the request that throw", throwing("path")],
  ["getters of headers that throw", { ...whole, headers: throwing("authorization") }],
  ["getters of a proxy's header that throw", { ...proxied, headers: throwing("x-forwarded-for") }],
  ["an array for headers", { ...whole, headers: [1, null, ["Authorization"]] }],
  ["numbers for headers", { ...whole, headers: { authorization: 1, "content-type": 2 } }],
  ["numbers for a proxy's header", { ...proxied, headers: { "x-forwarded-for": 1 } }],
  ["objects for addresses", { ...whole, remoteAddress: {}, originalPath: 1n }],
  ["an error that throws what cannot be printed", { ...whole, body: unreadable }],
  ["text for a function", { ...whole, authenticate: "yes" }],
])("a request is answered with an envelope, given %s", async (_, request) => {
  const response = await Reflect.apply(api.tenure.handle, undefined, [request])
  expect([400, 401, 500]).toContain(response.status)
  expect(JSON.parse(response.body)).toMatchObject({ ok: false, code: response.status })
})

const methods = {
  memberships: "createProject grant extend extendAll end find list history findProject",
  webhooks:
    "create list find delete rotateSecret addSigningKey enable deliveries replay replayMany replayPage ping",
  apiKeys: "issue revoke",
  events: "publish find",
} as const

const errorOf = (method: string): string => {
  if (method === "revoke") return "ApiKeyNotFound"
  return ["grant", "extend", "extendAll"].includes(method) ? "InvalidEndDate" : "InvalidInput"
}

describe.each(["memberships", "webhooks", "apiKeys", "events"] as const)(
  "a call of %s",
  (service) => {
    it.each(methods[service].split(" "))(
      "is refused with a typed error without its argument: %s",
      async (method) => {
        const call: unknown = Reflect.get(api.tenure[service], method)
        if (typeof call !== "function") throw new TypeError(`no method ${method}`)
        for (const args of [[], [null], [7], [{}]]) {
          const refusal = { _tag: errorOf(method) }
          await expect(Reflect.apply(call, undefined, args)).rejects.toMatchObject(refusal)
        }
      },
    )
  },
)

it("an event whose data throws what is no text is refused with a typed error", async () => {
  const data = throwingAlways(Object.create(null))
  const event = { projectId: "p1", type: "payment.completed", data }
  await expect(api.tenure.events.publish(event)).rejects.toMatchObject({ _tag: "InvalidInput" })
})

describe("a polluted Object.prototype", () => {
  const rootPrototype = Reflect.getPrototypeOf({}) ?? {}

  const pollute = async <A>(run: () => Promise<A>): Promise<A> => {
    const names = {
      authorization: `Bearer ${api.token}`,
      "x-forwarded-for": "203.0.113.8",
      "content-type": "text/plain",
      extend: future,
      url: "https://attacker.example/",
      projects: ["p1", "p2"],
      keyId: "attacker",
      total: 7,
      originalPath: "/other",
      authenticate: () => ({ keyId: "attacker", projects: ["p1", "p2"] }),
      token: "known",
      expiresAt: future,
      eventTypes: ["none"],
      maxPerProject: 0,
      requestId: "attacker",
    }
    for (const [name, value] of Object.entries(names)) {
      Reflect.defineProperty(rootPrototype, name, { value, configurable: true, writable: true })
    }
    try {
      return await run()
    } finally {
      for (const name of Object.keys(names)) Reflect.deleteProperty(rootPrototype, name)
    }
  }

  /** Returns the responses to a client with one project, without the parts that differ each time. */
  const responses = async (token: string) => {
    const send = (method: string, path: string, body?: object) =>
      api.send(method, path, body, { authorization: `Bearer ${token}` })
    const all = [
      await api.tenure.handle({ ...whole, remoteAddress: "203.0.113.7" }),
      await send("PATCH", extend, {}),
      await send("PATCH", extend, { extend: future }),
      await send("POST", webhooks, {}),
      await send("POST", webhooks, { url: "https://receiver.example/" }),
      await send("GET", "/v2/projects/p2/integrations/webhooks"),
      await send("GET", "/v2/unknown"),
    ]
    const withoutIds = (body: unknown) =>
      String(body)
        .replaceAll(uuid, "id")
        .replace(/whsec_[^"]+/, "secret")
    return all.map(({ body, status }) => [status, withoutIds(body)])
  }

  it("opens nothing, and changes no response", async () => {
    await api.tenure.memberships.createProject("p2")
    const { token } = await api.tenure.apiKeys.issue({ projects: ["p1"] })
    const before = await responses(token)
    expect(before.map(([status]) => status)).toEqual([401, 422, 200, 422, 200, 404, 404])
    expect(await pollute(() => responses(token))).toEqual(before)
  })

  it("gives no key a token that others know", async () => {
    const { apiKeys } = api.tenure
    expect((await pollute(() => apiKeys.issue({ projects: ["p1"] }))).token).toMatch(/^tnr_/)
    const listed = await apiKeys.list()
    expect(listed.every(({ expiresAt }) => expiresAt === undefined)).toBe(true)
  })

  it("is no option and no identity", async () => {
    const authenticate = (): Identity => Object.create({ keyId: "u1", projects: ["p1"] })
    const other = await pollute(() => createTenure({ stores: memory(), authenticate }))
    await other.memberships.createProject("p1")
    const response = await pollute(() => other.handle({ ...whole, remoteAddress: undefined }))
    expect(response.status).toBe(500)
    await other.close()
  })
})
