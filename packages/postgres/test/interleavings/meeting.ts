/** Has two operations meet: the second runs completely while the first stands at a gate. */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Standing, Stop } from "./gates.ts"
import {
  type Seen,
  beginReading,
  endReading,
  everything,
  observe,
  readMembers,
} from "./observing.ts"
import {
  type Operation,
  type Run,
  type Slot,
  answerOf,
  comparable,
  failureOf,
} from "./operations.ts"
import type { World } from "./world.ts"

/** Two operations. The first has gates. */
export type Pair = Readonly<Record<Slot, Operation>>

/** The outcome, as far as it takes one look. */
export interface Glance {
  readonly answers: Readonly<Record<Slot, unknown>>
  /** The members that others read after the answer to the second, unless that waited for the first. */
  readonly meanwhile: unknown
  /** All that is stored. */
  readonly everything: string
}

/** The outcome after two operations. */
export interface Outcome {
  readonly seen: Seen
  readonly broken: ReadonlyArray<string>
}

/** Where two operations met. */
export interface Place {
  readonly name: string
  /** Whether the second waited for the first. */
  readonly wasBlocked: boolean
}

const start = ({ processes, setting }: World, pair: Pair, slot: Slot) =>
  processes[slot].run(answerOf(pair[slot], setting, slot))

/** Waits until the operations stand as they should, or the one that is waited for is done. */
const until = async (
  world: World,
  isThere: (standing: Standing) => boolean,
  isDone: () => boolean,
): Promise<Standing> => {
  for (;;) {
    const wasDone = isDone()
    const standing = await world.gates.look()
    if (isThere(standing) || wasDone) return standing
  }
}

/** A promise that can be asked whether it has been settled. */
const watched = <A>(promise: Promise<A>) => {
  let isSettled = false
  const settled = () => {
    isSettled = true
  }
  void promise.then(settled, settled)
  return { promise, isSettled: () => isSettled }
}

const glance = async (
  { gates, schema }: World,
  answers: Glance["answers"],
  meanwhile: unknown,
): Promise<Glance> => {
  const [row] = await gates.run<Pick<Glance, "everything">>(everything(schema))
  return { answers, meanwhile, everything: row?.everything ?? "" }
}

const lookAt = async (
  world: World,
  { answers, meanwhile }: Glance,
  wrong: ReadonlyArray<string> = [],
): Promise<Outcome> => {
  const { broken, seen } = await observe(world)
  return { broken: [...wrong, ...broken], seen: { answers, meanwhile, ...seen } }
}

/** A step in an order: an operation, or a part. */
interface Step {
  readonly slot: Slot
  readonly part?: Run
}

/** All orders for the elements in two lists, each in its own sequence. */
const merges = <A>(
  one: ReadonlyArray<A>,
  other: ReadonlyArray<A>,
): ReadonlyArray<ReadonlyArray<A>> => {
  const [[first, ...rest], [second, ...others]] = [one, other]
  if (first === undefined || second === undefined) return [[...one, ...other]]
  return [
    ...merges(rest, other).map((steps) => [first, ...steps]),
    ...merges(one, others).map((steps) => [second, ...steps]),
  ]
}

const isContiguous = (steps: ReadonlyArray<Step>): boolean =>
  steps.filter(({ slot }, index) => slot !== steps[index - 1]?.slot).length === 2

/** The orders in which two operations can run, and those in which their parts can. */
const ordersOf = (pair: Pair): ReadonlyArray<ReadonlyArray<Step>> => {
  const stepsOf = (slot: Slot): ReadonlyArray<Step> =>
    pair[slot].parts?.map((part) => ({ slot, part })) ?? [{ slot }]
  return [
    [{ slot: "first" }, { slot: "second" }],
    [{ slot: "second" }, { slot: "first" }],
    ...merges(stepsOf("first"), stepsOf("second")).filter((steps) => !isContiguous(steps)),
  ]
}

const other = { first: "second", second: "first" } as const

/** Takes an order's steps. If one part fails, the operation's others are undone. */
const take = async (world: World, pair: Pair, steps: ReadonlyArray<Step>): Promise<Glance> => {
  await world.restore()
  await world.gates.close(undefined)
  const answers: Record<Slot, unknown> = { first: undefined, second: undefined }
  const ofParts: Record<Slot, Array<unknown>> = { first: [], second: [] }
  let meanwhile: unknown
  for (const { part, slot } of steps) {
    if (part === undefined) answers[slot] = await start(world, pair, slot)
    else {
      const result = await world.processes[slot].run(Effect.result(part(world.setting, slot)))
      if (Result.isFailure(result)) {
        const undone = await take(world, pair, [{ slot: other[slot] }])
        return { ...undone, answers: { ...undone.answers, [slot]: failureOf(result.failure) } }
      }
      ofParts[slot].push(result.success)
      answers[slot] = pair[slot].isNotOne === true ? "answered" : comparable(ofParts[slot])
    }
    if (slot === "second") meanwhile = await world.processes.second.run(readMembers)
  }
  return glance(world, answers, meanwhile)
}

/** The outcome after two operations in one possible order. */
export interface Order {
  readonly glance: Glance
  /** Takes a closer look. */
  readonly look: () => Promise<Outcome>
}

/** Runs two operations in all orders. */
export const runInOrder = async (world: World, pair: Pair): Promise<ReadonlyArray<Order>> => {
  const orders: Array<Order> = []
  for (const steps of ordersOf(pair)) {
    const seen = await take(world, pair, steps)
    let outcome: Promise<Outcome> | undefined
    orders.push({
      glance: seen,
      look: () => (outcome ??= take(world, pair, steps).then((again) => lookAt(world, again))),
    })
  }
  return orders
}

/** Counts an operation's gates while it runs alone. */
export const countGates = async (world: World, operation: Operation) => {
  await world.restore()
  await world.gates.close(undefined)
  await start(world, { first: operation, second: operation }, "first")
  return world.gates.passed()
}

/**
 * Runs the second operation while the first stands at a gate. Returns `undefined` if it does not come there.
 *
 * @param isKnown - whether a look closer would tell nothing more
 */
export const meet = async (
  world: World,
  pair: Pair,
  stop: Stop,
  isKnown: (glance: Glance) => boolean,
) => {
  const { gates, processes } = world
  const { run } = processes.second
  await world.restore()
  await gates.close(stop)
  const first = watched(start(world, pair, "first"))
  const { place } = await until(world, (now) => now.place !== undefined, first.isSettled)
  if (place === undefined) {
    await gates.open()
    await first.promise
    return undefined
  }
  const reader = await run(beginReading)
  const second = watched(start(world, pair, "second"))
  const { isBlocked } = await until(world, (now) => now.isBlocked, second.isSettled)
  const meanwhile = isBlocked ? undefined : await run(readMembers)
  await gates.open()
  const answers = { first: await first.promise, second: await second.promise }
  const wrong = await run(endReading(reader))
  const seen = await glance(world, answers, meanwhile)
  const met: Place = { name: place, wasBlocked: isBlocked }
  return {
    place: met,
    /** `undefined` if the first look told enough. */
    outcome: wrong.length === 0 && isKnown(seen) ? undefined : await lookAt(world, seen, wrong),
  }
}
