/** Judges two operations that met: they must have the effect that they have in one order or the other. */

import { inspect } from "node:util"
import type { Stop } from "./gates.ts"
import {
  type Glance,
  type Order,
  type Outcome,
  type Pair,
  type Place,
  countGates,
  meet,
  runInOrder,
} from "./meeting.ts"
import { type Operation, operations } from "./operations.ts"
import type { World } from "./world.ts"

/** Two operations that met, with an effect that neither order has. */
export interface Violation {
  readonly pair: Pair
  readonly stop: Stop
  readonly place: Place
  readonly outcome: Outcome
  readonly orders: ReadonlyArray<Outcome>
}

const isSame = (one: unknown, other: unknown): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

// What others read before the first operation goes on; not if the second waits for it.
const isMeanwhile = (part: string): boolean => part === "meanwhile"

/** The parts that differ. */
const differences = ({ seen }: Outcome, expected: Outcome): ReadonlyArray<string> =>
  Object.entries(seen).flatMap(([part, value]) =>
    (isMeanwhile(part) && value === undefined) || isSame(value, expected.seen[part]) ? [] : [part],
  )

// What members and their changes come to. A delivery is for the webhooks that there are when an event is
// stored, and others do not see the change before it commits.
const ofMembers = new Set([
  "meanwhile",
  "answers",
  "members",
  "elsewhere",
  "audit trail",
  "audit trails of members",
  "events by sequence",
])

interface Exception {
  readonly first: RegExp
  readonly second: RegExp
  /** What no order may have. */
  readonly parts: ReadonlyArray<string>
}

/** What is otherwise, and said to be. */
const exceptions: ReadonlyArray<Exception> = [
  // An extension without a condition locks no project. If it began before a bulk extension, it comes first in the
  // changes, also if the bulk extension is answered first.
  {
    first: /^(extend( twice| once( in another project)?| to a day)?|transaction of the host)$/,
    second: /^(extend all|undo)/,
    parts: ["meanwhile"],
  },
  // An erasure takes several steps. Somebody who returns meanwhile may be erased from the records of that, too.
  {
    first: /^erase$/,
    second:
      /^(grant to a member|grant if absent for a member|extend or create for a member|import|transaction of the host)$/,
    parts: ["audit trail", "audit trails of members", "feed", "events by sequence", "deliveries"],
  },
  // A webhook that is removed while an attempt is recorded may have deliveries in both states: nobody sends them.
  { first: /^settle and disable/, second: /^delete/, parts: ["answers", "deliveries"] },
  { first: /^delete/, second: /^settle and disable/, parts: ["answers", "deliveries"] },
]

/** Whether it is as in one order, and so is what others read while the first operation stood at its gate. */
const isLegal = ({ orders, outcome, pair }: Violation): boolean => {
  const excepted = new Set(
    exceptions
      .filter(({ first, second }) => first.test(pair.first.name) && second.test(pair.second.name))
      .flatMap(({ parts }) => parts),
  )
  const all = orders.map((expected) =>
    differences(outcome, expected).filter((part) => !excepted.has(part)),
  )
  return (
    outcome.broken.length === 0 &&
    all.some((parts) => parts.every(isMeanwhile)) &&
    (pair.first.isNotOne === true ||
      pair.second.isNotOne === true ||
      all.some((parts) => !parts.some((part) => ofMembers.has(part))))
  )
}

/** Whether all is as in one order at the first look. */
const isAmong = (glance: Glance, orders: ReadonlyArray<Order>): boolean =>
  orders.some(
    (order) =>
      glance.everything === order.glance.everything &&
      isSame(glance.answers, order.glance.answers) &&
      (glance.meanwhile === undefined || isSame(glance.meanwhile, order.glance.meanwhile)),
  )

/** An operation's gates: at all but the first statement, before which nothing has happened. */
export const stopsOf = async (world: World, operation: Operation): Promise<ReadonlyArray<Stop>> => {
  const { row, statement } = await countGates(world, operation)
  return [
    ...Array.from({ length: row }, (_, index): Stop => ({ kind: "row", n: index + 1 })),
    ...Array.from({ length: Math.max(0, statement - 1) }, (_, index): Stop => ({
      kind: "statement",
      n: index + 2,
    })),
  ]
}

/**
 * Has two operations meet at each given gate. Returns how often they have met, and what was wrong.
 *
 * @param most - stops after so many violations
 */
export const judge = async (
  world: World,
  pair: Pair,
  stops: ReadonlyArray<Stop>,
  most = Infinity,
) => {
  const orders = await runInOrder(world, pair)
  const violations: Array<Violation> = []
  let met = 0
  let blocked = 0
  for (const stop of stops) {
    if (violations.length === most) break
    const meeting = await meet(world, pair, stop, (glance) => isAmong(glance, orders))
    if (meeting === undefined) continue
    const { outcome, place } = meeting
    met++
    if (place.wasBlocked) blocked++
    if (outcome === undefined) continue
    const expected: Array<Outcome> = []
    for (const { look } of orders) expected.push(await look())
    const violation = { pair, stop, place, outcome, orders: expected }
    if (!isLegal(violation)) violations.push(violation)
  }
  return { met, blocked, violations }
}

/** Prepares what a process prepares once, so that gates are counted alike from then on. */
export const warmUp = async (world: World): Promise<void> => {
  for (const operation of operations) await countGates(world, operation)
}

/** Tells where operations met. */
export const titleOf = ({ pair, place, stop }: Violation): string =>
  `“${pair.second.name}” while “${pair.first.name}” stands at ${stop.kind} gate ${stop.n} (${place.name})` +
  (place.wasBlocked ? ", where it waits for a lock" : "")

/** Tells what has happened, and what differs from both orders. */
export const explain = (violation: Violation): string => {
  const { orders, outcome, pair } = violation
  const differing = orders.slice(0, 2).map((expected, index) => ({
    order: index === 0 ? [pair.first.name, pair.second.name] : [pair.second.name, pair.first.name],
    parts: Object.fromEntries(
      differences(outcome, expected).map((part) => [
        part,
        { is: outcome.seen[part], expected: expected.seen[part] },
      ]),
    ),
  }))
  return `${titleOf(violation)}\n${outcome.broken.join("\n")}\n${inspect(differing, { depth: 9 })}`
}
