import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { describe, expect, it, onTestFinished } from "vitest"
import { MembershipStore } from "../src/memberships/store.ts"
import { atCallSite } from "../src/promises.ts"
import { type Tenure, createTenure } from "../src/tenure.ts"

/** A store with delayed answers, like a database's. */
const later = Layer.effect(
  MembershipStore,
  Effect.map(MembershipStore, (right) => ({
    ...right,
    grant: (granted) => Effect.andThen(Effect.sleep(1), right.grant(granted)),
  })),
).pipe(Layer.provideMerge(memory()))

const opened = async (stores: typeof later): Promise<Tenure> => {
  const tenure = await createTenure({ stores })
  onTestFinished(tenure.close)
  return tenure
}

const stackOf = (call: Promise<unknown>): Promise<string> =>
  call.then(String, (error) => String(error.stack))

const member = { projectId: "nowhere", userId: "1" }

describe.each([
  ["at once", memory()],
  ["later", later],
])("an error that comes %s", (_, stores) => {
  it("has the frames of the caller, and no others", async () => {
    const tenure = await opened(stores)
    const onPayment = async (): Promise<void> => {
      await tenure.memberships.grant({ ...member, endDate: new Date(1) })
    }
    const lines = (await stackOf(onPayment())).split("\n")
    expect(lines[0]).toBe('ProjectNotFound: The project "nowhere" does not exist.')
    expect(lines[1]).toMatch(/at onPayment .*promises\.test\.ts/)
    expect(lines.filter((line) => /packages\/core\/src|\/effect\//.test(line))).toEqual([])
  })
})

it.each<readonly [string, (tenure: Tenure) => Promise<unknown>]>([
  ["events.read", (tenure) => tenure.events.read({ projectId: "nowhere" })],
  ["flush", (tenure) => tenure.flush({ timeout: -1 })],
  ["metrics", (tenure) => tenure.metrics()],
  // @ts-expect-error: there is no such option.
  ["createTenure", () => createTenure({ stores: memory(), webhook: {} })],
])("so has the error of %s", async (_, call) => {
  const tenure = await opened(memory())
  const [, first] = (await stackOf(call(tenure))).split("\n    at ")
  expect(first).toContain("promises.test.ts")
})

it("bugs and values that are no errors keep what they have", () => {
  const site = { stack: "Error\n    at elsewhere" }
  const bug = new TypeError("a bug")
  const { stack } = bug
  expect(atCallSite(bug, site)).toBe(bug)
  expect(bug.stack).toBe(stack)
  const frozen = Object.freeze(Object.assign(new Error("frozen"), { _tag: "Frozen" }))
  const sealed = Object.seal(Object.assign(new Error("sealed"), { _tag: "Sealed" }))
  for (const value of [frozen, sealed, "text", undefined, null, 7]) {
    expect(atCallSite(value, site)).toBe(value)
  }
  const own = Object.assign(new Error("two\nlines"), { _tag: "Own" })
  expect(atCallSite(own, {})).toBe(own)
  expect(atCallSite(own, site)).toBe(own)
  expect(own.stack).toBe("Error: two\nlines\n    at elsewhere")
})
