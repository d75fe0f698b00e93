/** Falsifies runs, to prove that every check can fail. */

import { announcements, neededEnds } from "./checks/announcements.ts"
import { healing, limits, refusals, statuses, waits } from "./checks/answers.ts"
import { checks } from "./checks/checks.ts"
import { delays, deletions, deliveries, owed, signatures } from "./checks/deliveries.ts"
import { endDates } from "./checks/end-dates.ts"
import { erasures, events, repetitions } from "./checks/events.ts"
import { feed, missedBy, timesIn } from "./checks/feed.ts"
import {
  comparedSizes,
  exits,
  growth,
  intrusions,
  logs,
  revocations,
  sizes,
  slots,
} from "./checks/processes.ts"
import type { Arrival, Check, Got, Operation, Reader, Run, Sample, State } from "./history.ts"

/** A way to falsify a run. */
interface Sabotage {
  readonly name: string
  readonly check: Check
  readonly spoil: (run: Run) => Run
}

class NothingToSpoil extends Error {}

/** Returns what a falsification needs. */
const wanted = <A>(item: A | undefined): A => {
  if (item === undefined) throw new NothingToSpoil()
  return item
}

/** Replaces an item in a record's list by others, or by none. */
const replace = <K extends string, A, T extends Readonly<Record<K, ReadonlyArray<A>>>>(
  record: T,
  key: K,
  old: A,
  ...by: ReadonlyArray<A>
): T => ({ ...record, [key]: record[key].flatMap((item) => (item === old ? by : [item])) })

/** Replaces a row that the database holds in the end. */
const replaceRow = <K extends keyof State, A>(
  run: Run & { readonly state: Readonly<Record<K, ReadonlyArray<NoInfer<A>>>> },
  key: K,
  old: A,
  ...by: ReadonlyArray<A>
): Run => ({ ...run, state: replace(run.state, key, old, ...by) })

const withOperations = (run: Run, ...more: ReadonlyArray<Operation>): Run => ({
  ...run,
  operations: [...run.operations, ...more],
})

// Longer than any run.
const hour = 3_600_000

const find = ({ operations }: Run, is: (operation: Operation) => boolean): Operation =>
  wanted(operations.find((one) => one.status === 200 && is(one)))

const anyOperation = (run: Run): Operation => find(run, ({ key }) => key !== undefined)

/** Changes an operation, and its instants to one that is so many milliseconds after its end. */
const later = (operation: Operation, millis: number): Operation => {
  const at = operation.end + millis
  return { ...operation, start: at, end: at }
}

/** An extension that was answered and not repeated, and its row. */
const extension = (run: Run) => {
  const operation = find(
    run,
    ({ action, idempotencyKey }) => action === "extend" && idempotencyKey === undefined,
  )
  return { operation, row: wanted(run.state.audit.find(({ to }) => to === operation.endDate)) }
}

/** Two answered changes for one member: the second found what the first had set. */
const succession = ({ operations, state }: Run) => {
  const changes = operations.filter(
    ({ action, idempotencyKey, status }) =>
      status === 200 && idempotencyKey === undefined && (action === "extend" || action === "grant"),
  )
  const asked = new Map(changes.map((operation) => [operation.endDate, operation]))
  const pairs = state.audit.flatMap((row) => {
    const first = row.userId === undefined ? undefined : asked.get(row.from)
    const second = asked.get(row.to)
    const isOwn = first?.userId === row.userId && second?.userId === row.userId
    // An announcement finds and leaves the same date.
    const isOther = first !== undefined && second !== undefined && first !== second
    return isOther && isOwn ? [{ first, second, row }] : []
  })
  return wanted(pairs[0])
}

/** The event that announces an end that had to be announced. */
const announcement = (run: Run) => wanted(neededEnds(run)[0]).event

/** A notification to a webhook whose creation was answered and that is still there. */
const arrival = (run: Run): { readonly arrival: Arrival; readonly creation: Operation } => {
  const kept = new Set(run.state.webhooks.map(({ url }) => url))
  const creations = new Map(
    run.operations
      .filter(({ webhook }) => webhook !== undefined && kept.has(webhook.url))
      .map((operation) => [operation.webhook?.url, operation]),
  )
  const found = wanted(run.arrivals.find(({ url }) => creations.has(url)))
  return { arrival: found, creation: wanted(creations.get(found.url)) }
}

const spoilReader = (
  run: Run,
  spoil: (got: ReadonlyArray<Got>, middle: Got) => ReadonlyArray<Got>,
  isFit: (reader: Reader) => boolean = () => true,
) => {
  const reader = wanted(run.readers.find((one) => one.got.length > 2 && isFit(one)))
  const middle = wanted(reader.got[Math.floor(reader.got.length / 2)])
  return replace(run, "readers", reader, { ...reader, got: spoil(reader.got, middle) })
}

/** Adds a server that runs for half an hour and holds more each minute. */
const growing = (run: Run, grow: (sample: Sample, minute: number) => Partial<Sample>): Run => {
  const sample = wanted(run.samples[0])
  const grown = Array.from({ length: 30 }, (_, minute) => ({
    ...sample,
    id: 0,
    at: sample.at + minute * 60_000,
    ...grow(sample, minute),
  }))
  return { ...run, samples: [...run.samples, ...grown] }
}

const ways = (
  check: Check,
  spoils: Readonly<Record<string, Sabotage["spoil"]>>,
): ReadonlyArray<Sabotage> =>
  Object.entries(spoils).map(([name, spoilOne]) => ({ name, check, spoil: spoilOne }))

export const sabotages: ReadonlyArray<Sabotage> = [
  ...ways(endDates, {
    "an answered extension is lost": (run) => replaceRow(run, "audit", extension(run).row),
    "an extension overwrites what it has not seen": (run) => {
      const { first, row } = succession(run)
      const from = run.state.audit.find(({ to }) => to === first.endDate)?.from
      return replaceRow(run, "audit", row, { ...row, from })
    },
    "an extension takes effect before one that was answered earlier": (run) => {
      const { first, second } = succession(run)
      const moved = { ...second, start: first.start - 2000, end: first.start - 1000 }
      return replace(run, "operations", second, moved)
    },
    "a membership ends with another date": (run) => {
      const membership = wanted(run.state.memberships[0])
      const by = { ...membership, endDate: membership.endDate + 1 }
      return replaceRow(run, "memberships", membership, by)
    },
    "a date is found that was overwritten": (run) => {
      const { first, second } = succession(run)
      const { end, start } = later(second, hour)
      return withOperations(run, { ...first, action: "find", start, end })
    },
  }),
  ...ways(repetitions, {
    "two requests with one idempotency key are carried out": (run) => {
      const { idempotencyKey, key } = find(run, (one) => one.idempotencyKey !== undefined)
      const { operation } = extension(run)
      const by = { ...operation, key, idempotencyKey, isReplayed: true }
      return replace(run, "operations", operation, by)
    },
    "a repetition is carried out again": (run) => {
      // The first answer may have been lost.
      const replayed = wanted(
        run.operations.find(
          ({ idempotencyKey, isReplayed, key }) =>
            isReplayed === true &&
            run.operations.some(
              (one) =>
                one.status === 200 &&
                one.isReplayed !== true &&
                one.idempotencyKey === idempotencyKey &&
                one.key === key,
            ),
        ),
      )
      return replace(run, "operations", replayed, { ...replayed, isReplayed: false })
    },
  }),
  ...ways(erasures, {
    "the audit trail names somebody who was erased": (run) => {
      const { operation, row } = extension(run)
      const { userId } = operation
      const named = replaceRow(run, "audit", row, { ...row, userId })
      const asked = { ...operation, endDate: undefined, requestId: undefined }
      return withOperations(named, later({ ...asked, action: "erase" }, hour))
    },
  }),
  ...ways(events, {
    "a change has no event": (run) => {
      const changed = run.state.events.find(({ type }) => type === "membership.extended")
      return replaceRow(run, "events", wanted(changed))
    },
    "a published event is lost": (run) => {
      const { subject } = find(run, ({ action }) => action === "publish")
      const text = `"payment":"${subject}"`
      const published = run.state.events.find(({ body }) => body.includes(text))
      return replaceRow(run, "events", wanted(published))
    },
  }),
  ...ways(announcements, {
    "an end is not announced": (run) => replaceRow(run, "events", announcement(run)),
    "an end is announced twice": (run) => {
      const event = announcement(run)
      return replaceRow(run, "events", event, event, { ...event, id: `${event.id}-2` })
    },
    "an end is announced for a date that did not hold": (run) => {
      const event = announcement(run)
      const date = '"end_date":"2000-01-01T00:00:00.000Z"'
      const body = event.body.replace(/"end_date":"[^"]*"/, date)
      return replaceRow(run, "events", event, { ...event, body })
    },
  }),
  ...ways(deliveries, {
    "a delivery stays open": (run) => {
      // Those of deleted webhooks may stay open.
      const kept = new Set(run.state.webhooks.map(({ id }) => id))
      const delivery = wanted(
        run.state.deliveries.find(
          ({ state, webhookId }) => state === "delivered" && kept.has(webhookId),
        ),
      )
      return replaceRow(run, "deliveries", delivery, { ...delivery, state: "ready", attempts: 1 })
    },
    "an event has no delivery to a webhook": (run) => {
      const { eventId, webhookId } = wanted(owed(run)[0])
      const delivery = run.state.deliveries.find(
        (one) => one.eventId === eventId && one.webhookId === webhookId,
      )
      return replaceRow(run, "deliveries", wanted(delivery))
    },
    "events reach a receiver late": (run) => {
      wanted(delays(run)[0])
      return { ...run, arrivals: run.arrivals.map((one) => ({ ...one, at: one.at + hour })) }
    },
    "deliveries wait for nothing": (run) => ({ ...run, drainedMillis: hour }),
  }),
  ...ways(deletions, {
    "an attempt goes on after a deletion": (run) => {
      const { arrival: one, creation } = arrival(run)
      const subject = creation.webhook?.id
      const deletion = {
        ...creation,
        action: "deleteWebhook",
        webhook: undefined,
        subject,
      } as const
      const endless = replace(run, "arrivals", one, { ...one, ended: undefined })
      return withOperations(endless, { ...deletion, status: 200, start: one.at, end: one.at + 1 })
    },
  }),
  ...ways(signatures, {
    "a notification is not signed": (run) => {
      const { arrival: one } = arrival(run)
      const headers = { ...one.headers, "webhook-signature": "v1,AAAA" }
      return replace(run, "arrivals", one, { ...one, headers })
    },
  }),
  ...ways(feed, {
    "a reader misses an event": (run) =>
      spoilReader(run, (got, { eventId }) => got.filter((one) => one.eventId !== eventId)),
    "a feed asks for what comes after the last position": (run) => {
      wanted(missedBy(run.naive, run)[0])
      return { ...run, readers: [...run.readers, run.naive] }
    },
    "a reader gets an event that never happened": (run) =>
      spoilReader(run, (got, middle) => [...got, { ...middle, eventId: "another" }]),
    "a reader gets an event again that its cursor has passed": (run) =>
      spoilReader(run, (got) => [...got, wanted(got.find(({ isSettled }) => isSettled))]),
    "a reader gets events in another order": (run) => {
      const times = timesIn(run)
      // Events that happened at the same time have no order.
      const isOrdered = ({ got }: Reader) => {
        const settled = got
          .filter(({ isSettled }) => isSettled)
          .flatMap(({ eventId }) => times.get(eventId) ?? [])
        return settled.some(({ end }) => settled.some(({ start }) => end < start))
      }
      return spoilReader(run, (got) => got.toReversed(), isOrdered)
    },
    "a reader gets events late": (run) => {
      const times = timesIn(run)
      const isTimed = ({ got }: Reader) => got.some(({ eventId }) => times.has(eventId))
      return spoilReader(run, (got) => got.map((one) => ({ ...one, at: one.at + hour })), isTimed)
    },
  }),
  ...ways(slots, {
    "a key has eleven connections": (run) => {
      const one = wanted(run.connections.find(({ from, to }) => to > from))
      const crowd = Array.from({ length: 11 }, () => one)
      return { ...run, connections: [...run.connections, ...crowd] }
    },
  }),
  ...ways(revocations, {
    "a connection outlives its key": (run) => {
      const one = wanted(run.revocations[0])
      return replace(run, "revocations", one, { ...one, ended: one.ended + hour })
    },
  }),
  ...ways(intrusions, {
    "a connection outlives what is no frame of the protocol": (run) => {
      const one = wanted(run.intrusions[0])
      return replace(run, "intrusions", one, { ...one, ended: one.ended + hour })
    },
  }),
  ...ways(limits, {
    "a key is admitted more often than it may be": (run) =>
      withOperations(run, ...Array.from({ length: 30 }, () => later(anyOperation(run), hour))),
  }),
  ...ways(refusals, {
    "somebody is refused who keeps to the limits": (run) => {
      const operation = find(
        run,
        ({ action, key }) => action === "listWebhooks" && key !== undefined,
      )
      const refused = { ...operation, status: 429 }
      return withOperations(run, later(refused, hour), later(refused, 2 * hour))
    },
  }),
  ...ways(statuses, {
    "an answer is 500": (run) => {
      const operation = anyOperation(run)
      return replace(run, "operations", operation, { ...operation, status: 500 })
    },
  }),
  ...ways(waits, {
    "an answer takes a minute": (run) => {
      const operation = anyOperation(run)
      return replace(run, "operations", operation, { ...operation, end: operation.end + 60_000 })
    },
  }),
  ...ways(healing, {
    "an answer is 503 while all is well": (run) => {
      const operation = anyOperation(run)
      return replace(run, "operations", operation, later({ ...operation, status: 503 }, hour))
    },
  }),
  ...ways(exits, {
    "a server ends with an error": (run) => {
      const exit = wanted(run.exits[0])
      return replace(run, "exits", exit, { ...exit, code: 1 })
    },
  }),
  ...ways(logs, {
    "a log contains an API key": (run) => {
      const secret = wanted(Object.values(run.secrets)[0])
      return { ...run, logs: [...run.logs, { process: "s1", text: `{"token":"${secret}"}` }] }
    },
  }),
  ...ways(sizes, {
    "memory grows": (run) => {
      const size = wanted(comparedSizes(run)[0])
      return replace(run, "sizes", size, { ...size, after: { ...size.after, bytes: 2 ** 33 } })
    },
  }),
  ...ways(growth, {
    "the heap of a server grows by a little each minute": (run) =>
      growing(run, ({ heapBytes }, minute) => ({ heapBytes: heapBytes + minute * 2 ** 20 })),
    "a server gets more memory each minute, outside of its heap": (run) =>
      growing(run, ({ bytes }, minute) => ({ bytes: bytes + minute * 2 ** 23 })),
    "a server leaves some files open each minute": (run) =>
      growing(run, ({ handles }, minute) => ({ handles: handles + 3 * minute })),
  }),
]

/** Falsifies a run; `undefined` if it has nothing that could be falsified like this. */
const spoiled = ({ spoil: by }: Sabotage, run: Run): Run | undefined => {
  try {
    return by(run)
  } catch (error) {
    if (error instanceof NothingToSpoil) return undefined
    throw error
  }
}

const textsOf = ({ find: findIn }: Check, run: Run): ReadonlySet<string> =>
  new Set(findIn(run).map(({ text }) => text))

/** What a falsification led to: `nothing` if the run has nothing that could be falsified like this. */
type Outcome = "caught" | "missed" | "nothing"

/** Tells whether its check finds something in the falsified run that it does not find in the run itself. */
export const outcomeOf = (one: Sabotage, run: Run): Outcome => {
  const falsified = spoiled(one, run)
  if (falsified === undefined) return "nothing"
  const known = textsOf(one.check, run)
  return [...textsOf(one.check, falsified)].every((text) => known.has(text)) ? "missed" : "caught"
}

/** Falsifies a run in each way that concerns a check, by name. */
export const spoil = (check: Check, run: Run): ReadonlyArray<readonly [name: string, run: Run]> =>
  sabotages.flatMap((one) => {
    const by = one.check === check ? spoiled(one, run) : undefined
    return by === undefined ? [] : [[one.name, by] as const]
  })

/** What each falsification led to in a run, by name. */
export type Outcomes = ReadonlyMap<string, Outcome>

/** Falsifies a run in every way. */
export const sabotage = (run: Run): Outcomes =>
  new Map(sabotages.map((one) => [one.name, outcomeOf(one, run)]))

/** Names the falsifications that were missed in a run. */
export const missedIn = (outcomes: Outcomes): ReadonlyArray<string> =>
  [...outcomes].flatMap(([name, outcome]) => (outcome === "missed" ? [name] : []))

/** Names the falsifications for which no run had anything, and the checks that nothing falsifies. */
export const untried = (outcomes: ReadonlyArray<Outcomes>): ReadonlyArray<string> => [
  ...sabotages
    .filter(({ name }) => outcomes.every((of) => of.get(name) === "nothing"))
    .map(({ name }) => name),
  ...checks
    .filter((check) => !sabotages.some((one) => one.check === check))
    .map(({ name }) => name),
]
