import { describe, expect, it } from "vitest"
import { checks } from "../../faults/checks/checks.ts"
import type { Operation, Run, State } from "../../faults/history.ts"
import { missedIn, outcomeOf, sabotage, sabotages, untried } from "../../faults/sabotage.ts"
import { begin, soundRun } from "./sound-run.ts"

const named = (name: string) =>
  sabotages.find((one) => one.name === name) ?? expect.fail(`there is no "${name}"`)

const first = <A>([one]: ReadonlyArray<A>): A => one ?? expect.fail("the run has none")

const withState = (state: Partial<State>, run: Run = soundRun): Run => ({
  ...run,
  state: { ...run.state, ...state },
})

const { arrivals, connections, operations, readers, samples, sizes, state } = soundRun

const isDeletion = ({ action }: Operation) => action === "deleteWebhook"
const deletion = first(operations.filter(isDeletion))
const creations = operations.filter(({ webhook }) => webhook !== undefined)

const asked = (second: number, fields: Partial<Operation>): Operation => ({
  ...deletion,
  subject: undefined,
  start: begin + 1000 * second,
  end: begin + 1000 * second + 20,
  ...fields,
})

const withOperations = (...more: ReadonlyArray<Operation>): Run => ({
  ...soundRun,
  operations: [...more, ...operations],
})

describe("what is falsified is caught:", () => {
  it.each(sabotages)("$name", (one) => {
    expect(outcomeOf(one, soundRun)).toBe("caught")
  })

  it("every check has a falsification", () => {
    expect(missedIn(sabotage(soundRun))).toEqual([])
    expect(untried([sabotage(soundRun)])).toEqual([])
    expect(checks.map(({ name }) => name)).toHaveLength(21)
  })

  it("a run without deletions and erasures is falsified, too", () => {
    const run = {
      ...soundRun,
      operations: operations.filter((one) => !isDeletion(one) && one.action !== "erase"),
    }
    for (const name of [
      "an attempt goes on after a deletion",
      "the audit trail names somebody who was erased",
    ]) {
      expect(outcomeOf(named(name), run)).toBe("caught")
    }
  })

  it("what was missed is told for a run, and what no run could try for all", () => {
    const some = new Map([
      ["an answer is 500", "missed"],
      ["memory grows", "nothing"],
    ] as const)
    const all = sabotage(soundRun)
    expect(missedIn(some)).toEqual(["an answer is 500"])
    expect(untried([some])).toEqual(["memory grows"])
    expect(untried([some, all])).toEqual([])
  })
})

describe("what a check excuses is not falsified:", () => {
  const deletedWebhook = (): Run => {
    const { webhook } = first(creations.filter((one) => one.webhook?.id === deletion.subject))
    const eventId = first(state.events).id
    const delivery = { ...first(state.deliveries), eventId, webhookId: webhook?.id ?? "" }
    const arrival = {
      ...first(arrivals),
      url: webhook?.url ?? "",
      headers: { "webhook-id": eventId },
    }
    const run = { ...soundRun, arrivals: [arrival, ...arrivals] }
    return withState({ deliveries: [delivery, ...state.deliveries] }, run)
  }

  const deletedInVain = (): Run => {
    const { projectId } = first(operations)
    const webhook = { ...first(state.webhooks), id: "w0", url: "http://127.0.0.1:1/fast/2" }
    const run = withOperations(
      asked(0.05, { action: "createWebhook", webhook }),
      asked(0.1, { subject: webhook.id, status: 429 }),
    )
    const webhooks = [{ ...webhook, projectId, isDisabled: false }, ...state.webhooks]
    return withState({ webhooks }, { ...run, manners: { ...run.manners, [webhook.url]: "fast" } })
  }

  const announcedId = "1002"

  const extendedAndUndone = (): Run => {
    const made = { ...first(state.audit), userId: undefined, to: undefined, bulkExtensionId: "b" }
    const [extended, undone] = ["request-extended", "request-undone"]
    const all = { userId: undefined, endDate: undefined }
    const run = withOperations(
      asked(12, { ...all, action: "extendAll", extendBy: 86_400_000, requestId: extended }),
      asked(12.5, { ...all, action: "undo", requestId: undone }),
    )
    const audit = [
      ...state.audit,
      { ...made, action: "bulk_extended_by", extendBy: 86_400_000, requestId: extended },
      { ...made, action: "bulk_undone", requestId: undone },
    ]
    return withState({ audit }, run)
  }

  const ended = first(state.memberships.filter(({ userId }) => userId === announcedId))

  const earlyReader = (): Run => {
    const projectId = "p2"
    const early = ["a", "b", "c"].map((id) => ({ ...first(state.events), id, projectId }))
    const got = early.map(({ id }) => ({ eventId: id, at: begin, isSettled: true }))
    const run = { ...soundRun, readers: [{ name: "early", projectId, got }, ...readers] }
    return withState({ events: [...early, ...state.events] }, run)
  }

  const unsettledReader = (): Run => {
    const reader = first(readers)
    const got = reader.got.map((one) => ({ ...one, isSettled: false }))
    return { ...soundRun, readers: [{ ...reader, got }, ...readers] }
  }

  it.each<readonly [name: string, excused: string, run: Run, outcome: "caught" | "nothing"]>([
    ["a delivery stays open", "to a deleted webhook", deletedWebhook(), "caught"],
    [
      "an event has no delivery to a webhook",
      "whose deletion was refused before",
      deletedInVain(),
      "caught",
    ],
    [
      "an end is not announced",
      "of somebody whom a request wanted to erase",
      withOperations(asked(12, { action: "erase", userId: announcedId, status: 503 })),
      "nothing",
    ],
    [
      "an end is not announced",
      "that a bulk extension moved and its undo brought back",
      extendedAndUndone(),
      "nothing",
    ],
    [
      "an end is not announced",
      "that came as the run ended",
      { ...soundRun, endedAt: ended.endDate + 1000 },
      "nothing",
    ],
    [
      "a reader gets events in another order",
      "before a cursor followed them",
      unsettledReader(),
      "caught",
    ],
    ["a reader gets events late", "that were there before the run", earlyReader(), "caught"],
    [
      "a key has eleven connections",
      "that end as they begin",
      {
        ...soundRun,
        connections: [...connections.map((one) => ({ ...one, to: one.from })), ...connections],
      },
      "caught",
    ],
    [
      "memory grows",
      "of a server that ran for long",
      {
        ...soundRun,
        samples: samples.map((one, index) => ({ ...one, at: begin + 1_260_000 * index })),
        sizes: [...sizes, { ...first(sizes), process: "s2" }],
      },
      "caught",
    ],
    [
      "a repetition is carried out again",
      "if the first answer was lost",
      {
        ...soundRun,
        operations: operations.map((one) =>
          one.idempotencyKey !== undefined && one.status === 200 && one.isReplayed !== true
            ? { ...one, status: 0 }
            : one,
        ),
      },
      "nothing",
    ],
  ])("%s, %s", (name, _, run, outcome) => {
    const one = named(name)
    expect(one.check.find(run)).toEqual([])
    expect(outcomeOf(one, run)).toBe(outcome)
  })
})
