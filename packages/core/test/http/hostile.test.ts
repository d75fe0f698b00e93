import { memory } from "@tenure/memory"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { emptyBody } from "../../src/http/request.ts"
import type { Identity } from "../../src/keys/identity.ts"
import { type Tenure, createTenure } from "../../src/tenure.ts"

const webhooks = "/v2/projects/p1/integrations/webhooks"
const extend = "/v2/projects/p1/memberships/1001/extend"
const future = "2099-01-01T00:00:00.000Z"
const uuid = /[\da-f]{8}-[\da-f-]{27}/g

let tenure: Tenure
let token: string

beforeEach(async () => {
  tenure = await createTenure({ stores: memory(), trustedProxies: ["127.0.0.0/8"] })
  await tenure.memberships.createProject("p1")
  await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: future })
  token = (await tenure.apiKeys.issue({ projects: ["p1"] })).token
})

afterEach(() => tenure.close())

const throwing = (name: string): object =>
  Object.defineProperty({}, name, {
    enumerable: true,
    get: () => {
      throw new Error("a getter")
    },
  })

/** An object that throws something whenever anybody reads a property. */
const throwingAlways = (thrown: object): object => {
  const trap = (): never => {
    throw thrown
  }
  return new Proxy({}, { get: trap, getOwnPropertyDescriptor: trap })
}

const empty = { _tag: "Bytes", bytes: new Uint8Array(0) }
const whole = { method: "GET", path: webhooks, headers: {}, body: empty }

describe("handle", () => {
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
    ["a body of an unknown kind", { ...whole, method: "POST", body: { _tag: "Other" } }],
    ["bytes that are none", { ...whole, method: "POST", body: { _tag: "Bytes" } }],
    ["an error without text", { ...whole, body: { _tag: "Unreadable" } }],
    ["getters of the request that throw", Object.assign(throwing("path"), {})],
    ["getters of headers that throw", { ...whole, headers: throwing("authorization") }],
    [
      "getters of a proxy's header that throw",
      { ...whole, remoteAddress: "127.0.0.1", headers: throwing("x-forwarded-for") },
    ],
    ["an array for headers", { ...whole, headers: [1, null, ["Authorization"]] }],
    ["numbers for headers", { ...whole, headers: { authorization: 1, "content-type": 2 } }],
    [
      "numbers for a proxy's header",
      { ...whole, remoteAddress: "127.0.0.1", headers: { "x-forwarded-for": 1 } },
    ],
    ["objects for addresses", { ...whole, remoteAddress: {}, originalPath: 1n }],
    [
      "an error that throws what cannot be printed",
      { ...whole, body: { _tag: "Unreadable", error: throwingAlways(throwing("message")) } },
    ],
    ["text for a function", { ...whole, authenticate: "yes" }],
  ])("answers with an envelope, given %s", async (_, request) => {
    const response = await Reflect.apply(tenure.handle, undefined, [request])
    expect([400, 401, 500]).toContain(response.status)
    expect(JSON.parse(response.body)).toMatchObject({ ok: false, code: response.status })
  })
})

describe("a call in process without its argument", () => {
  it.each([
    ["memberships", "createProject", "InvalidInput"],
    ["memberships", "grant", "InvalidEndDate"],
    ["memberships", "extend", "InvalidEndDate"],
    ["memberships", "extendAll", "InvalidEndDate"],
    ["memberships", "end", "InvalidInput"],
    ["memberships", "find", "InvalidInput"],
    ["memberships", "list", "InvalidInput"],
    ["memberships", "history", "InvalidInput"],
    ["memberships", "findProject", "InvalidInput"],
    ["webhooks", "create", "InvalidInput"],
    ["webhooks", "list", "InvalidInput"],
    ["webhooks", "find", "InvalidInput"],
    ["webhooks", "delete", "InvalidInput"],
    ["webhooks", "rotateSecret", "InvalidInput"],
    ["webhooks", "addSigningKey", "InvalidInput"],
    ["webhooks", "enable", "InvalidInput"],
    ["webhooks", "deliveries", "InvalidInput"],
    ["webhooks", "replay", "InvalidInput"],
    ["webhooks", "replayMany", "InvalidInput"],
    ["webhooks", "replayPage", "InvalidInput"],
    ["webhooks", "ping", "InvalidInput"],
    ["apiKeys", "issue", "InvalidInput"],
    ["apiKeys", "revoke", "ApiKeyNotFound"],
    ["events", "publish", "InvalidInput"],
    ["events", "find", "InvalidInput"],
  ] as const)("is refused with a typed error: %s.%s", async (service, method, tag) => {
    const call: unknown = Reflect.get(tenure[service], method)
    if (typeof call !== "function") throw new TypeError(`no method ${method}`)
    for (const args of [[], [null], [7], [{}]]) {
      await expect(Reflect.apply(call, undefined, args)).rejects.toMatchObject({ _tag: tag })
    }
  })
})

it("an event whose data throws what is no text is refused with a typed error", async () => {
  const event = {
    projectId: "p1",
    type: "payment.completed",
    data: throwingAlways(Object.create(null)),
  }
  await expect(tenure.events.publish(event)).rejects.toMatchObject({ _tag: "InvalidInput" })
})

const utf8 = new TextEncoder()

const call = (method: string, path: string, body: object | undefined, authorized = true) =>
  tenure.handle({
    method,
    path,
    headers: {
      ...(authorized && { authorization: `Bearer ${token}` }),
      ...(body && { "content-type": "application/json" }),
    },
    body: { _tag: "Bytes", bytes: utf8.encode(body === undefined ? "" : JSON.stringify(body)) },
    remoteAddress: "203.0.113.7",
  })

/** The responses to some requests, without what differs each time. */
const responses = async () => {
  const all = [
    await call("GET", webhooks, undefined, false),
    await call("PATCH", extend, {}),
    await call("PATCH", extend, { extend: future }),
    await call("POST", webhooks, {}),
    await call("POST", webhooks, { url: "https://receiver.example/" }),
    await call("GET", "/v2/projects/p2/integrations/webhooks", undefined),
    await call("GET", "/v2/unknown", undefined),
  ]
  return all.map(({ body, status }) => [
    status,
    String(body)
      .replaceAll(uuid, "id")
      .replace(/whsec_[^"]+/, "secret"),
  ])
}

const rootPrototype = Reflect.getPrototypeOf({}) ?? {}

describe("a polluted Object.prototype", () => {
  const pollute = async <A>(run: () => Promise<A>): Promise<A> => {
    const names = {
      authorization: `Bearer ${token}`,
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

  it("opens nothing, and changes no response", async () => {
    const before = await responses()
    expect(before.map(([status]) => status)).toEqual([401, 422, 200, 422, 200, 404, 404])
    expect(await pollute(responses)).toEqual(before)
  })

  it("gives no key a token that others know", async () => {
    const issued = await pollute(() => tenure.apiKeys.issue({ projects: ["p1"] }))
    expect(issued.token).toMatch(/^tnr_/)
    const listed = await tenure.apiKeys.list()
    expect(listed.every(({ expiresAt }) => expiresAt === undefined)).toBe(true)
  })

  it("is no option and no identity", async () => {
    const authenticate = (): Identity => Object.create({ keyId: "u1", projects: ["p1"] })
    const other = await pollute(() => createTenure({ stores: memory(), authenticate }))
    await other.memberships.createProject("p1")
    const request = { method: "GET", path: webhooks, headers: {}, body: emptyBody }
    const response = await pollute(() => other.handle({ ...request, remoteAddress: undefined }))
    expect(response.status).toBe(500)
    await other.close()
  })
})
