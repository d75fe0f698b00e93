/** Falsified runs, each of which a check must catch. */

import { healing, statuses, waits } from "./checks/answers.ts"
import { checks } from "./checks/checks.ts"
import { deletions } from "./checks/deletions.ts"
import { deliveries } from "./checks/deliveries.ts"
import { endDates } from "./checks/endDates.ts"
import { events } from "./checks/events.ts"
import { limits } from "./checks/limits.ts"
import { exits, logs, sizes } from "./checks/processes.ts"
import { signatures } from "./checks/signatures.ts"
import type { Check, Holding, Operation, Run, State } from "./history.ts"

/** A way to falsify a run. */
export interface Sabotage {
  readonly name: string
  readonly check: Check
  readonly spoil: (run: Run) => Run
}

const wanted = <A>(item: A | undefined): A => {
  if (item === undefined) throw new Error("the run has nothing that could be falsified like this")
  return item
}

const replace = <A>(items: ReadonlyArray<A>, old: A, ...by: ReadonlyArray<A>): ReadonlyArray<A> =>
  items.flatMap((item) => (item === old ? by : [item]))

const withState = (run: Run, changed: Partial<State>): Run => ({
  ...run,
  state: { ...run.state, ...changed },
})

const withOperation = (run: Run, old: Operation, ...by: ReadonlyArray<Operation>): Run => ({
  ...run,
  operations: replace(run.operations, old, ...by),
})

/** An extension that was answered, and its row. */
const extension = ({ operations, state }: Run) => {
  const operation = wanted(
    operations.find(({ action, status }) => action === "extend" && status === 200),
  )
  return { operation, row: wanted(state.audit.find(({ to }) => to === operation.endDate)) }
}

/** Two answered changes of one member, of which the second one found what the first one had set. */
const succession = ({ operations, state }: Run) => {
  const asked = new Map(
    operations
      .filter(({ action, status }) => status === 200 && (action === "extend" || action === "grant"))
      .map((operation) => [operation.endDate, operation]),
  )
  const pairs = state.audit.flatMap((row) => {
    const first = row.userId === undefined ? undefined : asked.get(row.from)
    const second = asked.get(row.to)
    const isOwn = first?.userId === row.userId && second?.userId === row.userId
    return first === undefined || second === undefined || !isOwn ? [] : [{ first, second, row }]
  })
  return wanted(pairs[0])
}

const publication = ({ operations, state }: Run) => {
  const { subject } = wanted(
    operations.find(({ action, status }) => action === "publish" && status === 200),
  )
  return wanted(state.events.find(({ body }) => body.includes(`"payment":"${subject}"`)))
}

const membershipEvent = ({ state }: Run) =>
  wanted(state.events.find(({ type }) => type === "membership.extended"))

/** A delivery to a receiver that is well, of an event that was answered. */
const arrival = (run: Run) => {
  const kept = new Set(run.state.webhooks.map(({ url }) => url))
  return wanted(
    run.arrivals.find(
      ({ status, url }) => status === 204 && kept.has(url) && run.manners[url] === "fast",
    ),
  )
}

const anyOperation = ({ operations }: Run): Operation =>
  wanted(operations.find(({ key, status }) => key !== undefined && status === 200))

const hour = 3_600_000

const changedDelivery = (
  run: Run,
  old: string,
  changed: { state: string; attempts: number },
): Run => {
  const delivery = wanted(run.state.deliveries.find(({ state }) => state === old))
  const by = { ...delivery, ...changed }
  return withState(run, { deliveries: replace(run.state.deliveries, delivery, by) })
}

const spoilExit = (run: Run, changed: { code?: number; millis?: number }): Run => {
  const exit = wanted(run.exits[0])
  return { ...run, exits: replace(run.exits, exit, { ...exit, ...changed }) }
}

const spoilSize = (run: Run, changed: Partial<Holding>): Run => {
  const size = wanted(run.sizes[0])
  const after = { ...size.after, ...changed }
  return { ...run, sizes: replace(run.sizes, size, { ...size, after }) }
}

/** All falsifications. */
export const sabotages: ReadonlyArray<Sabotage> = [
  {
    name: "an answered extension is lost",
    check: endDates,
    spoil: (run) => withState(run, { audit: replace(run.state.audit, extension(run).row) }),
  },
  {
    name: "an extension is made twice",
    check: endDates,
    spoil: (run) => {
      const { row } = extension(run)
      return withState(run, { audit: replace(run.state.audit, row, row, row) })
    },
  },
  {
    name: "a refused extension is made",
    check: endDates,
    spoil: (run) => {
      const { operation } = extension(run)
      return withOperation(run, operation, { ...operation, status: 422 })
    },
  },
  {
    name: "an extension overwrites what it has not seen",
    check: endDates,
    spoil: (run) => {
      const { first, row } = succession(run)
      const from = run.state.audit.find(({ to }) => to === first.endDate)?.from
      return withState(run, { audit: replace(run.state.audit, row, { ...row, from }) })
    },
  },
  {
    name: "an extension takes effect before one that was answered earlier",
    check: endDates,
    spoil: (run) => {
      const { first, second } = succession(run)
      const moved = { ...second, start: first.start - 2000, end: first.start - 1000 }
      return withOperation(run, second, moved)
    },
  },
  {
    name: "a membership ends with another date",
    check: endDates,
    spoil: (run) => {
      const membership = wanted(run.state.memberships[0])
      const by = { ...membership, endDate: membership.endDate + 1 }
      return withState(run, { memberships: replace(run.state.memberships, membership, by) })
    },
  },
  {
    name: "a date is found that was overwritten",
    check: endDates,
    spoil: (run) => {
      const { first, second } = succession(run)
      const at = second.end + hour
      const stale = { ...first, action: "find", start: at, end: at } as const
      return { ...run, operations: [...run.operations, stale] }
    },
  },
  {
    name: "a change has no event",
    check: events,
    spoil: (run) => withState(run, { events: replace(run.state.events, membershipEvent(run)) }),
  },
  {
    name: "a change has two events",
    check: events,
    spoil: (run) => {
      const event = membershipEvent(run)
      return withState(run, { events: [...run.state.events, { ...event, id: `${event.id}-2` }] })
    },
  },
  {
    name: "an event tells another date",
    check: events,
    spoil: (run) => {
      const event = membershipEvent(run)
      const body = event.body.replace(/"new_end_date":"[^"]*"/, '"new_end_date":"never"')
      return withState(run, { events: replace(run.state.events, event, { ...event, body }) })
    },
  },
  {
    name: "a published event is lost",
    check: events,
    spoil: (run) => withState(run, { events: replace(run.state.events, publication(run)) }),
  },
  {
    name: "a delivery stays open",
    check: deliveries,
    spoil: (run) => changedDelivery(run, "delivered", { state: "leased", attempts: 1 }),
  },
  {
    name: "a delivery is given up at once",
    check: deliveries,
    spoil: (run) => {
      const { headers, url } = arrival(run)
      const webhook = wanted(run.state.webhooks.find((one) => one.url === url))
      const delivery = wanted(
        run.state.deliveries.find(
          ({ eventId, webhookId }) => eventId === headers["webhook-id"] && webhookId === webhook.id,
        ),
      )
      const by = { ...delivery, state: "failed", attempts: 1 }
      return withState(run, { deliveries: replace(run.state.deliveries, delivery, by) })
    },
  },
  {
    name: "a delivery is cancelled without a deletion",
    check: deliveries,
    spoil: (run) => {
      const kept = new Set(run.state.webhooks.map(({ id }) => id))
      const delivery = wanted(run.state.deliveries.find(({ webhookId }) => kept.has(webhookId)))
      const by = { ...delivery, state: "cancelled" }
      return withState(run, { deliveries: replace(run.state.deliveries, delivery, by) })
    },
  },
  {
    name: "no receiver accepted what counts as delivered",
    check: deliveries,
    spoil: (run) => {
      const { headers, url } = arrival(run)
      return {
        ...run,
        arrivals: run.arrivals.filter(
          (one) => one.url !== url || one.headers["webhook-id"] !== headers["webhook-id"],
        ),
      }
    },
  },
  {
    name: "an event has no delivery to a webhook",
    check: deliveries,
    spoil: (run) => {
      const { webhook } = wanted(
        run.operations.find(
          ({ webhook: created }) => created !== undefined && run.manners[created.url] === "fast",
        ),
      )
      return withState(run, {
        deliveries: run.state.deliveries.filter(({ webhookId }) => webhookId !== webhook?.id),
      })
    },
  },
  {
    name: "events reach a receiver late",
    check: deliveries,
    spoil: (run) => ({
      ...run,
      arrivals: run.arrivals.map((one) => ({ ...one, at: one.at + hour })),
    }),
  },
  {
    name: "deliveries wait for nothing",
    check: deliveries,
    spoil: (run) => ({ ...run, drainedMillis: hour }),
  },
  {
    name: "something is sent after a deletion",
    check: deletions,
    spoil: (run) => {
      const deletion = wanted(
        run.operations.find(({ action, status }) => action === "deleteWebhook" && status === 200),
      )
      const { webhook } = wanted(
        run.operations.find((operation) => operation.webhook?.id === deletion.subject),
      )
      const late = { ...arrival(run), url: webhook?.url ?? "", at: deletion.end + hour }
      return { ...run, arrivals: [...run.arrivals, late] }
    },
  },
  {
    name: "a notification is not signed",
    check: signatures,
    spoil: (run) => {
      const one = arrival(run)
      const by = { ...one, headers: { ...one.headers, "webhook-signature": "v1,AAAA" } }
      return { ...run, arrivals: replace(run.arrivals, one, by) }
    },
  },
  {
    name: "an attempt has another id",
    check: signatures,
    spoil: (run) => {
      const one = arrival(run)
      const by = { ...one, headers: { ...one.headers, "webhook-id": "another" } }
      return { ...run, arrivals: replace(run.arrivals, one, by) }
    },
  },
  {
    name: "an attempt has another body",
    check: signatures,
    spoil: (run) => {
      const one = arrival(run)
      return { ...run, arrivals: replace(run.arrivals, one, { ...one, body: `${one.body} ` }) }
    },
  },
  {
    name: "a key is admitted more often than it may be",
    check: limits,
    spoil: (run) => {
      const operation = anyOperation(run)
      const at = operation.end + hour
      const more = Array.from({ length: 30 }, () => ({ ...operation, start: at, end: at }))
      return { ...run, operations: [...run.operations, ...more] }
    },
  },
  {
    name: "an answer is 500",
    check: statuses,
    spoil: (run) => {
      const operation = anyOperation(run)
      return withOperation(run, operation, { ...operation, status: 500 })
    },
  },
  {
    name: "an answer has no valid envelope",
    check: statuses,
    spoil: (run) => {
      const operation = anyOperation(run)
      return withOperation(run, operation, { ...operation, problem: "no valid envelope" })
    },
  },
  {
    name: "an answer takes a minute",
    check: waits,
    spoil: (run) => {
      const operation = anyOperation(run)
      return withOperation(run, operation, { ...operation, end: operation.end + 60_000 })
    },
  },
  {
    name: "an answer is 503 while all is well",
    check: healing,
    spoil: (run) => {
      const operation = anyOperation(run)
      const at = operation.end + hour
      return withOperation(run, operation, { ...operation, status: 503, start: at, end: at })
    },
  },
  {
    name: "a request is not answered while all is well",
    check: healing,
    spoil: (run) => {
      const operation = anyOperation(run)
      const at = operation.end + hour
      return withOperation(run, operation, { ...operation, status: 0, start: at, end: at })
    },
  },
  {
    name: "a server ends with an error",
    check: exits,
    spoil: (run) => spoilExit(run, { code: 1 }),
  },
  {
    name: "a server ends late",
    check: exits,
    spoil: (run) => spoilExit(run, { millis: hour }),
  },
  {
    name: "a log contains an API key",
    check: logs,
    spoil: (run) => {
      const [secret] = Object.values(run.secrets)
      return { ...run, logs: [...run.logs, { process: "s1", text: `{"token":"${secret}"}` }] }
    },
  },
  {
    name: "memory grows",
    check: sizes,
    spoil: (run) => spoilSize(run, { bytes: 2 ** 33 }),
  },
  {
    name: "handles stay open",
    check: sizes,
    spoil: (run) => spoilSize(run, { handles: 1000 }),
  },
]

const textsOf = ({ find }: Check, run: Run): ReadonlySet<string> =>
  new Set(find(run).map(({ text }) => text))

/** Tells whether its check finds something in the falsified run that it does not find in the run itself. */
export const isCaught = ({ check, spoil }: Sabotage, run: Run): boolean => {
  const before = textsOf(check, run)
  return [...textsOf(check, spoil(run))].some((text) => !before.has(text))
}

/** Returns the names of the falsifications that no check catches, and of checks that none falsifies. */
export const uncaught = (run: Run): ReadonlyArray<string> => [
  ...sabotages.filter((one) => !isCaught(one, run)).map(({ name }) => name),
  ...checks
    .filter((check) => !sabotages.some((one) => one.check === check))
    .map(({ name }) => name),
]
