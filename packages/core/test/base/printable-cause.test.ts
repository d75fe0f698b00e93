import { memory } from "@tenure/memory"
import * as Cause from "effect/Cause"
import * as fc from "fast-check"
import { describe, expect, it, vi } from "vitest"
import { printableCause } from "../../src/base/printable-cause.ts"
import { emptyBody } from "../../src/http/request.ts"
import type { Fields } from "../../src/telemetry/host-logger.ts"
import { type TenureOptions, createTenure } from "../../src/tenure.ts"

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

/** Thrown values that are hard to print. */
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

const member = { projectId: "p1", userId: "1" }

const request = {
  method: "GET",
  path: "/v2/projects/p1/integrations/webhooks",
  headers: {},
  body: emptyBody,
  remoteAddress: undefined,
}

/** Runs a test with Tenure's options, and passes it the log. */
const withTenure = async (
  options: Omit<TenureOptions, "stores">,
  test: (tenure: Awaited<ReturnType<typeof createTenure>>, log: Array<Fields>) => Promise<void>,
) => {
  const log: Array<Fields> = []
  const write = (fields: Fields, message: string) => void log.push({ ...fields, message })
  const logger = { info: write, warn: write, error: write }
  const tenure = await createTenure({ stores: memory(), logger, ...options })
  await test(tenure, log)
  await tenure.close()
}

describe.each(thrown)("%s", (_name, error) => {
  const fail = () => {
    throw error
  }

  it("is printed, within bounds", () => {
    for (const cause of [Cause.die(error), Cause.fail(error)]) {
      const text = Cause.pretty(printableCause(cause))
      expect(text.length).toBeGreaterThan(3)
      expect(text.length).toBeLessThan(100_000)
    }
  })

  it.each([
    ["thrown", fail],
    ["rejected", () => Promise.reject(error)],
  ])("fails no call when onEvent and onResponse have %s it", async (_how, callback) => {
    await withTenure({ onEvent: callback, onResponse: callback }, async (tenure, log) => {
      await tenure.memberships.createProject("p1")
      const endDate = "2099-01-01T00:00:00.000Z"
      expect(await tenure.memberships.grant({ ...member, endDate })).toMatchObject(member)
      expect(await tenure.handle(request)).toMatchObject({ status: 401 })
      await vi.waitFor(() => expect(log).toHaveLength(2))
      const messages = log.map(({ message }) => message)
      expect(messages.toSorted()).toEqual(["onEvent threw", "onResponse threw"])
    })
  })

  it("is a 500 when authenticate has thrown it, whatever onError throws", async () => {
    await withTenure({ authenticate: fail, onError: fail }, async (tenure, log) => {
      expect(await tenure.handle(request)).toMatchObject({ status: 500 })
      expect(log.map(({ message }) => message)).toEqual([
        "A request ended in a defect",
        "onError threw",
      ])
    })
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
