import { memory } from "@tenure/memory"
import * as Cause from "effect/Cause"
import * as fc from "fast-check"
import { describe, expect, it, vi } from "vitest"
import { printableCause } from "../../src/base/printable-cause.ts"
import { emptyBody } from "../../src/http/request.ts"
import { createTenure } from "../../src/tenure.ts"
import { recordingLogger } from "../support/logger.ts"

const throwing = (): never => {
  throw new Error("cannot be read")
}

const chain = (length: number): Error => {
  let error = new Error("the first cause")
  for (let n = 1; n < length; n++) error = new Error(`cause ${n}`, { cause: error })
  return error
}

const circular = (): Error => {
  const error = new Error("circular")
  error.cause = new Error("other", { cause: error })
  return error
}

const endless = (): object => ({
  message: "endless",
  get cause() {
    return endless()
  },
})

const nested = new AggregateError([])
nested.errors.push(nested, nested)

const hostile = new Proxy(new Error("hostile"), {
  get: throwing,
  getPrototypeOf: throwing,
  has: throwing,
  ownKeys: throwing,
  getOwnPropertyDescriptor: throwing,
})

const revoked = (): object => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

/** Values that a program may throw, and that are hard to print. */
const thrown: ReadonlyArray<readonly [string, unknown]> = [
  ["an error with 6,000 causes", chain(6000)],
  ["an error that is its own cause", circular()],
  ["an error with a new cause whenever it is read", endless()],
  ["an error within itself", nested],
  [
    "an error whose message throws",
    Object.defineProperty(new Error(), "message", { get: throwing }),
  ],
  ["an error whose cause throws", Object.defineProperty(new Error(), "cause", { get: throwing })],
  ["an error whose stack is no text", Object.assign(new Error("no text"), { stack: Symbol("s") })],
  ["an object whose toString throws", { toString: throwing, toJSON: throwing }],
  ["an object without a prototype", Object.create(null)],
  ["a proxy that throws", hostile],
  ["a revoked proxy", revoked()],
  ["a symbol", Symbol("thrown")],
  ["a bigint", 1n],
  ["nothing", undefined],
  ["an error with a long message", new Error("long ".repeat(1_000_000))],
  ["an error with a message of many lines", new Error("line\n".repeat(1_000_000))],
]

const request = {
  method: "GET",
  path: "/v2/projects/p1/integrations/webhooks",
  headers: {},
  body: emptyBody,
  remoteAddress: undefined,
}

describe.each(thrown)("%s", (_name, error) => {
  const fail = () => {
    throw error
  }
  const reject = () => Promise.reject(error)

  it("is printed, within bounds", () => {
    for (const cause of [Cause.die(error), Cause.fail(error)]) {
      const text = Cause.pretty(printableCause(cause))
      expect(text.length).toBeGreaterThan(3)
      expect(text.length).toBeLessThan(100_000)
    }
  })

  it("fails no call that calls the host, and is a 500 when authenticate has thrown it", async () => {
    const { entries, logger } = recordingLogger()
    const tenure = await createTenure({
      stores: memory(),
      logger,
      authenticate: fail,
      onError: fail,
      onEvent: fail,
      onResponse: reject,
    })
    await tenure.memberships.createProject("p1")
    const member = { projectId: "p1", userId: "1", endDate: "2099-01-01T00:00:00.000Z" }
    expect(await tenure.memberships.grant(member)).toMatchObject({ userId: "1" })
    expect(await tenure.handle(request)).toMatchObject({ status: 500 })
    const expected = [
      "A request ended in a defect",
      "onError threw",
      "onEvent threw",
      "onResponse threw",
    ]
    await vi.waitFor(() =>
      expect(new Set(entries.map(({ message }) => message))).toEqual(new Set(expected)),
    )
    await tenure.close()
  })
})

it("keeps what errors say, with their causes and stacks", () => {
  const error = new TypeError("outer", { cause: new Error("inner") })
  const text = Cause.pretty(printableCause(Cause.die(error)))
  expect(text).toBe(Cause.pretty(Cause.die(error)))
  expect(text).toMatch(/^TypeError: outer\n.*printable-cause\.test\.ts[^]*Error: inner\n/)
  expect(Cause.pretty(printableCause(Cause.die({ code: 7 })))).toContain('{"code":7}')
})

it("prints whatever is thrown", () => {
  fc.assert(
    fc.property(fc.anything({ withNullPrototype: true, withBigInt: true }), (error) => {
      expect(Cause.pretty(printableCause(Cause.die(error)))).not.toBe("")
    }),
  )
})
