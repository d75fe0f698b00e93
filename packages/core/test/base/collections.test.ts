import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type RoundRobin, makeRoundRobin } from "../../src/base/collections.ts"

const elements = fc.nat({ max: 5 })
const steps = fc.oneof(
  fc.record({ _tag: fc.constantFrom("enqueue", "requeue"), element: elements }),
  fc.record({
    _tag: fc.constant("park"),
    element: elements,
    until: fc.option(fc.nat({ max: 100 }), { nil: Infinity }),
  }),
  fc.record({ _tag: fc.constant("wake"), now: fc.nat({ max: 1000 }) }),
)
type Step = typeof steps extends fc.Arbitrary<infer A> ? A : never

/** The same in the simplest way. */
class Model {
  queue: Array<number> = []
  parked: Array<readonly [element: number, until: number]> = []

  take(element: number): void {
    this.queue = this.queue.filter((one) => one !== element)
    this.parked = this.parked.filter(([one]) => one !== element)
  }

  enqueue(element: number): void {
    if (this.queue.includes(element)) return
    this.take(element)
    this.queue.push(element)
  }

  wake(now: number): void {
    const inOrder = this.parked.toSorted(([, one], [, other]) => one - other)
    for (const [element, until] of inOrder) if (until <= now) this.enqueue(element)
  }
}

/** Returns a different time for each element, so that elements wake in a defined order. */
const timeOf = (element: number, until: number): number => 10 * until + element

const run = (turns: RoundRobin<number>, model: Model, step: Step): void => {
  if ("now" in step) {
    turns.wake(step.now)
    model.wake(step.now)
  } else if ("until" in step) {
    const until = timeOf(step.element, step.until)
    turns.park(step.element, until)
    model.take(step.element)
    if (until !== Infinity) model.parked.push([step.element, until])
  } else {
    if (step._tag === "requeue") model.take(step.element)
    turns[step._tag === "requeue" ? "requeue" : "enqueue"](step.element)
    model.enqueue(step.element)
  }
}

describe("turns", () => {
  it("follow the queue, which parked elements join at their time", () => {
    fc.assert(
      fc.property(fc.array(steps, { maxLength: 200 }), (all) => {
        const turns = makeRoundRobin<number>()
        const model = new Model()
        for (const step of all) {
          run(turns, model, step)
          expect([...turns.queue()]).toEqual(model.queue)
          // Too early does no harm; too late would delay an element.
          const first = Math.min(Infinity, ...model.parked.map(([, until]) => until))
          expect(turns.nextAt() ?? Infinity).toBeLessThanOrEqual(first)
        }
      }),
    )
  })

  it("include elements that are enqueued during the iteration", () => {
    const turns = makeRoundRobin<string>()
    turns.enqueue("a")
    turns.enqueue("b")
    const seen: Array<string> = []
    for (const element of turns.queue()) {
      seen.push(element)
      if (seen.length < 5) turns.requeue(element)
      else turns.park(element, Infinity)
    }
    expect(seen).toEqual(["a", "b", "a", "b", "a", "b"])
  })
})
