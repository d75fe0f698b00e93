/** Simulated runs, as runs of the specifications. */

import * as Predicate from "effect/Predicate"
import type { Run, StoredEvent } from "../simulation/record.ts"
import { simulate } from "../simulation/simulate.ts"
import type { StoreOperation, WorldOptions } from "../simulation/world.ts"

/** A simulated run. */
export interface Trace {
  readonly seed: number
  readonly run: Run
  readonly operations: ReadonlyArray<StoreOperation>
}

/** Runs a seed, and records what the stores did. */
export const traceOf = async (
  seed: number,
  options: Pick<WorldOptions, "database" | "sabotage"> = {},
): Promise<Trace> => {
  const operations: Array<StoreOperation> = []
  const { run } = await simulate(seed, {
    onOperation: (operation) => operations.push(operation),
    ...options,
  })
  return { seed, run, operations }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  Predicate.isObject(value)

const at = (value: unknown, ...path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((inner, name) => (isRecord(inner) ? inner[name] : undefined), value)

const listAt = (value: unknown, ...path: ReadonlyArray<string>): ReadonlyArray<unknown> => {
  const list = at(value, ...path)
  return Array.isArray(list) ? list : []
}

/** Numbers things in the order in which they come. */
const makeNumbers = () => {
  const known = new Map<unknown, number>()
  return (thing: unknown): number => {
    const number = known.get(thing) ?? known.size + 1
    known.set(thing, number)
    return number
  }
}

/** Webhooks, as they come and go. */
const makeWebhooks = () => {
  const projects = new Map<string, string>()
  return {
    add: (webhook: unknown) =>
      projects.set(String(at(webhook, "id")), String(at(webhook, "projectId"))),
    remove: (id: unknown) => projects.delete(String(id)),
    of: (projectId: unknown) =>
      [...projects].filter(([, own]) => own === projectId).map(([id]) => id),
  }
}

const publishing = new Set([
  "grant",
  "extend",
  "pause",
  "resume",
  "extendAll",
  "undoBulkExtension",
  "end",
  "publish",
  "sweep",
])

/** Returns the events that an operation has stored. */
const published = (
  { args, method, value }: StoreOperation,
  events: ReadonlyMap<string, StoredEvent>,
) => {
  if (!publishing.has(method)) return []
  const stored =
    method === "sweep"
      ? listAt(value, "events")
      : method === "publish"
        ? [value === undefined ? args[0] : undefined]
        : [at(value, "event") ?? value]
  return stored.flatMap((event) => events.get(String(at(event, "id"))) ?? [])
}

const stateOf = { Delivered: "Delivered", Failed: "Failed", Retry: "Waiting" } as const

const isSettled = (tag: unknown): tag is keyof typeof stateOf =>
  typeof tag === "string" && Object.hasOwn(stateOf, tag)

/** Names a delivery. */
const refOf = (webhook: unknown, event: unknown): string =>
  `"${String(webhook).slice(0, 8)} ${String(event)}"`

/** How deliveries go on. */
const deliveries = ({ operations, run }: Trace): ReadonlyArray<string> => {
  const events = new Map(run.remains.events.map((event) => [event.id, event]))
  const webhooks = makeWebhooks()
  const tokenOf = makeNumbers()
  const idsOf = new Map<string, Array<string>>()
  const steps: Array<string> = []
  for (const operation of operations) {
    const { args, method, tick, value } = operation
    const before = steps.length
    steps.push(`pass(${tick})`)
    for (const { id, projectId } of published(operation, events)) {
      for (const webhook of webhooks.of(projectId)) {
        steps.push(`publish(${refOf(webhook, id)})`)
        idsOf.set(webhook, [...(idsOf.get(webhook) ?? []), refOf(webhook, id)])
      }
    }
    if (method === "add") webhooks.add(args[0])
    if (method === "remove") {
      webhooks.remove(args[1])
      for (const id of idsOf.get(String(args[1])) ?? []) steps.push(`cancel(${id})`)
    }
    if (method === "claim") {
      const lease = Number(at(args[0], "leaseMillis"))
      for (const claim of listAt(value, "claims")) {
        const id = refOf(at(claim, "webhook", "webhookId"), at(claim, "event", "id"))
        steps.push(`claim(${id}, ${tokenOf(at(claim, "lease"))}, ${lease})`)
      }
    }
    if (method === "settle") {
      const [claim, settlement] = args
      const id = refOf(at(claim, "webhook", "webhookId"), at(claim, "event", "id"))
      const token = tokenOf(at(claim, "lease"))
      const tag = at(settlement, "_tag")
      if (value === "Lapsed") steps.push(`lapse(${id}, ${token})`)
      else if (isSettled(tag)) {
        const delay = Number(at(settlement, "delayMillis") ?? 0)
        steps.push(`settle(${id}, ${token}, ${stateOf[tag]}, ${Math.floor(delay)})`)
      } else steps.push(`release(${id}, ${token})`)
    }
    // Time passes with the next step that counts.
    if (steps.length === before + 1) steps.pop()
  }
  return steps
}

const millisOf = (date: unknown): number => Date.parse(String(date)) % 100_000_000_000

/** How the dates in the first project change, and which there are in the end. */
const bulk = ({ run: { remains } }: Trace): ReadonlyArray<string> => {
  const idOf = makeNumbers()
  const paused = new Set<unknown>()
  const steps = remains.events
    .filter(({ projectId }) => projectId === "p1")
    // That a pause has ended by itself is published later.
    .toSorted((one, other) => Number(one.data["sequence"]) - Number(other.data["sequence"]))
    .flatMap(({ data, id, type }) => {
      const date = millisOf(data["new_end_date"])
      switch (type) {
        case "membership.paused":
          paused.add(data["user_id"])
          return []
        case "membership.resumed":
          paused.delete(data["user_id"])
          return [`setOwn("${String(data["user_id"])}", ${millisOf(data["end_date"])})`]
        case "membership.granted":
        case "membership.extended":
          return [`setOwn("${String(data["user_id"])}", ${date})`]
        case "membership.ended":
          paused.delete(data["user_id"])
          return [`end("${String(data["user_id"])}")`]
        case "memberships.extended": {
          const kind = data["mode"] === "never_shorten" ? "NeverShorten" : "Set_"
          return [`extendAll(${idOf(id)}, ${kind}, ${date})`]
        }
        case "memberships.extension_undone":
          return [`undo(${idOf(data["bulk_extension_id"])})`]
        default:
          return []
      }
    })
  const last = remains.members
    .filter(({ projectId, userId }) => projectId === "p1" && !paused.has(userId))
    .map(({ endDate, userId }) => `has("${userId}", ${endDate % 100_000_000_000})`)
  return [...steps, ...last.map((claim) => `expectedNow(${claim})`)]
}

/** Numbers events by when they were stored. Numbers begin anew when an epoch begins. */
const makeEpochs = () => {
  const places = new Map<string, { readonly epoch: number; readonly number: number }>()
  let epoch = 1
  let last = 0
  return {
    current: () => epoch,
    begin: () => {
      epoch++
      last = 0
    },
    store: (id: string): number => {
      places.set(id, { epoch, number: ++last })
      return last
    },
    /** The numbers of events that were stored in an epoch. */
    numbersIn: (of: number, ids: ReadonlyArray<unknown>): ReadonlyArray<number> =>
      ids.flatMap((id) => {
        const place = places.get(String(id))
        return place?.epoch === of ? place.number : []
      }),
  }
}

/** What a reader in the first project gets, who goes on after its last cursor. */
const feed = ({ operations, run }: Trace): ReadonlyArray<string> => {
  const events = new Map(run.remains.events.map((event) => [event.id, event]))
  const epochs = makeEpochs()
  const steps: Array<string> = []
  let cursor: unknown = "start"
  let cursorEpoch = 1
  for (const operation of operations) {
    if (operation.method === "move") {
      epochs.begin()
      steps.push("move(1)")
    }
    for (const { id, projectId } of published(operation, events)) {
      if (projectId === "p1") steps.push("begin", `commit(${epochs.store(id)})`)
    }
    const [projects, from] = operation.args
    const isNext =
      operation.method === "read" &&
      from === cursor &&
      listAt({ projects }, "projects").join(" ") === "p1"
    if (!isNext || at(operation.value, "isLast") !== true) continue
    const ids = listAt(operation.value, "events").map((event) => at(event, "id"))
    // One page reads on into the next epoch, where the specification has one for each.
    for (; cursorEpoch < epochs.current(); cursorEpoch++)
      steps.push(readThese(epochs.numbersIn(cursorEpoch, ids)))
    steps.push(readThese(epochs.numbersIn(cursorEpoch, ids)))
    cursor = at(operation.value, "cursor")
  }
  return steps
}

const readThese = (numbers: ReadonlyArray<number>): string =>
  `readThese(Set(${numbers.join(", ")}))`

/** What each specification sees in a run. */
const views = { deliveries, bulk, feed } as const

export type Specification = keyof typeof views

// A run is an expression: one that is nested deeper is refused.
const maxSteps = 150

/** Prints runs as a module that tests them. */
export const printTraces = (name: Specification, traces: ReadonlyArray<Trace>): string =>
  [
    `module traces {`,
    `  import ${name}.* from "./${name}"`,
    ...traces.map((trace) => {
      const steps = views[name](trace).slice(0, maxSteps)
      return `  run seed${trace.seed}Test = init${steps.map((step) => `\n    .then(${step})`).join("")}`
    }),
    "}",
    "",
  ].join("\n")
