import { describe, expect, it } from "vitest"
import { announcements } from "../../faults/checks/announcements.ts"
import { healing, waits } from "../../faults/checks/answers.ts"
import { checks, violationsOf } from "../../faults/checks/checks.ts"
import { deletions } from "../../faults/checks/deletions.ts"
import { deliveries } from "../../faults/checks/deliveries.ts"
import { endDates } from "../../faults/checks/end-dates.ts"
import { limits, refusals } from "../../faults/checks/limits.ts"
import type { Check, Fault, Operation, Run } from "../../faults/history.ts"
import { outcomeOf, sabotage, sabotages, uncaught } from "../../faults/sabotage.ts"
import { begin, soundRun } from "./sound-run.ts"

const textsOf = (check: Check, run: Run): ReadonlyArray<string> =>
  check.find(run).map(({ text }) => text)

const withFault = (fault: Partial<Fault>): Run => ({
  ...soundRun,
  faults: soundRun.faults.map((one) => ({ ...one, ...fault })),
})

const withOperations = (...more: ReadonlyArray<Operation>): Run => ({
  ...soundRun,
  operations: [...soundRun.operations, ...more],
})

const extension = soundRun.operations.find(({ action }) => action === "extend")

const operation = (second: number, fields: Partial<Operation>): Operation => {
  if (extension === undefined) throw new Error("the run has no extension")
  const start = begin + 1000 * second
  return { ...extension, action: "listWebhooks", start, end: start + 20, ...fields }
}

it("nothing is wrong in a sound run", () => {
  expect(violationsOf(soundRun)).toEqual([])
})

describe("what is falsified is caught:", () => {
  it.each(sabotages.map((one) => [one.name, one] as const))("%s", (_, one) => {
    expect(outcomeOf(one, soundRun)).toBe("caught")
  })

  it("a repetition is not falsified if the first answer was lost", () => {
    const operations = soundRun.operations.map((one) =>
      one.idempotencyKey !== undefined && one.status === 200 && one.isReplayed !== true
        ? { ...one, status: 0 }
        : one,
    )
    const repetition = sabotages.find(({ name }) => name === "a repetition is carried out again")
    expect(repetition && outcomeOf(repetition, { ...soundRun, operations })).toBe("nothing")
  })

  it("every check has a falsification", () => {
    expect(uncaught([sabotage(soundRun)])).toEqual([])
    expect(checks.map(({ name }) => name)).toHaveLength(21)
  })
})

describe("a fault excuses", () => {
  it("an answer at the server that it hits, until it has healed", () => {
    expect(textsOf(healing, withOperations(operation(23.4, { status: 503 })))).toEqual([])
    expect(textsOf(healing, withOperations(operation(23.6, { status: 503 })))).toHaveLength(1)
  })

  it("no answer at another server", () => {
    const run = withOperations(operation(20.1, { status: 503, process: "s2" }))
    expect(textsOf(healing, run)).toHaveLength(1)
  })

  it("no answer in another project, if it locks one", () => {
    expect(textsOf(healing, withFault({ kind: "projectLocked", target: "p1" }))).toEqual([])
    expect(textsOf(healing, withFault({ kind: "projectLocked", target: "p2" }))).toHaveLength(1)
  })

  it("nothing long after its beginning, if new connections work at once", () => {
    const late = { start: begin + 16_000, end: begin + 30_000 }
    expect(textsOf(healing, withFault({ ...late, kind: "linkStalled" }))).toEqual([])
    expect(textsOf(healing, withFault({ ...late, kind: "linkDelayed" }))).toHaveLength(1)
  })

  it("what begins after the port of a server that is asked to end has closed", () => {
    const run = withFault({ kind: "serverTerminated", end: begin + 21_000 })
    const early = operation(20.1, { action: "ready", status: 503 })
    const late = operation(20.5, { status: 0 })
    expect(textsOf(healing, { ...run, operations: [early, late] })).toEqual([])
    const taken = operation(20.2, { status: 0, end: begin + 20_900 })
    expect(textsOf(healing, { ...run, operations: [taken] })).toHaveLength(1)
  })

  it("the time in which a server stands still", () => {
    const slow = withOperations(operation(20, { end: begin + 37_000 }))
    const fault = { kind: "serverStopped", start: begin + 20_000, end: begin + 23_000 } as const
    expect(textsOf(waits, slow)).toHaveLength(1)
    expect(textsOf(waits, { ...slow, faults: [{ ...fault, target: "s1" }] })).toEqual([])
    expect(textsOf(waits, { ...slow, faults: [{ ...fault, target: "s2" }] })).toHaveLength(1)
  })

  it("a notification after a deletion that a process could not learn of", () => {
    const url = soundRun.operations[1]?.webhook?.url ?? ""
    const arrivals = soundRun.arrivals.map((arrival) => ({ ...arrival, url, at: begin + 1000 }))
    const late = { ...soundRun, arrivals: arrivals.slice(0, 1) }
    expect(textsOf(deletions, late)).toHaveLength(1)
    const fault = { kind: "linkStalled", target: "s2", start: begin, end: begin + 900 } as const
    expect(textsOf(deletions, { ...late, faults: [fault] })).toEqual([])
    const next = { ...fault, start: begin + 400 }
    expect(textsOf(deletions, { ...late, faults: [next] })).toEqual([])
  })

  it("a delay of events that it meets on their way, until it has healed", () => {
    const [first, ...others] = soundRun.arrivals
    if (first === undefined) throw new Error("the run has no arrival")
    // Its change is answered at second 2.
    const arrivingAt = (second: number, start: number): Run => ({
      ...soundRun,
      arrivals: [{ ...first, at: begin + 1000 * second }, ...others],
      faults: [
        { kind: "serverKilled", target: "s1", start: begin + start, end: begin + start + 500 },
      ],
    })
    expect(textsOf(deliveries, arrivingAt(5.5, 1000))).toHaveLength(1)
    expect(textsOf(deliveries, arrivingAt(5.5, 2100))).toEqual([])
    expect(textsOf(deliveries, arrivingAt(5.7, 2100))).toHaveLength(1)
    expect(textsOf(deliveries, arrivingAt(5.5, 5100))).toHaveLength(1)
  })
})

describe("limits", () => {
  const burst = (count: number, second: number) =>
    withOperations(...Array.from({ length: count }, () => operation(second, { key: "greedy" })))

  it("admit a burst, and no more", () => {
    expect(textsOf(limits, burst(20, 10))).toEqual([])
    expect(textsOf(limits, burst(21, 10))).toHaveLength(1)
  })

  it("may refuse what exceeds them, and nothing else", () => {
    const refused = (count: number) =>
      withOperations(
        ...Array.from({ length: count }, () => operation(10, { key: "greedy" })),
        operation(10, { key: "greedy", status: 429 }),
      )
    expect(textsOf(refusals, refused(20))).toEqual([])
    expect(textsOf(refusals, refused(19))).toHaveLength(1)
  })

  it("may refuse a key once after the clock of the database has jumped", () => {
    const jump = { kind: "databaseClockJumped", target: undefined } as const
    const refusedAt = (...seconds: ReadonlyArray<number>): Run => ({
      ...withOperations(
        ...seconds.map((second) => operation(second, { key: "late", status: 429 })),
      ),
      faults: [{ ...jump, start: begin + 9000, end: begin + 10_000 }],
    })
    expect(textsOf(refusals, refusedAt(14))).toEqual([])
    expect(textsOf(refusals, refusedAt(14, 16))).toHaveLength(1)
  })

  it("are those of each process while the database does not answer", () => {
    expect(textsOf(limits, burst(60, 20.2))).toEqual([])
    expect(textsOf(limits, burst(100, 20.2))).toHaveLength(1)
  })
})

describe("the clock of the database", () => {
  const hour = 3_600_000
  const fault = {
    kind: "databaseClockJumped",
    target: undefined,
    start: begin + 7500,
    end: begin + 9000,
  } as const

  /** A run whose ends are announced by a clock that is off. */
  const shifted = (millis: number, faults: ReadonlyArray<Fault>): Run => ({
    ...soundRun,
    faults: [...soundRun.faults, ...faults],
    state: {
      ...soundRun.state,
      events: soundRun.state.events
        .filter(({ type }) => type !== "membership.expiring")
        .map((event) => {
          if (event.type !== "membership.expired") return event
          const timestamp = new Date(begin + 8000 + millis).toISOString()
          const body = event.body.replace(/"timestamp":"[^"]*"/, `"timestamp":"${timestamp}"`)
          return { ...event, body }
        }),
    },
  })

  it("may announce ends early, if it has jumped", () => {
    expect(textsOf(announcements, shifted(hour, [fault]))).toEqual([])
    expect(textsOf(announcements, shifted(hour, []))).not.toEqual([])
    expect(textsOf(announcements, shifted(0, [fault]))).toHaveLength(1)
  })
})

it("a reminder is missing if there was time for it", () => {
  const without = (run: Run): Run => {
    const events = run.state.events.filter(({ type }) => type !== "membership.expiring")
    return { ...run, state: { ...run.state, events } }
  }
  expect(textsOf(announcements, without(soundRun))).toHaveLength(1)
  expect(textsOf(announcements, without({ ...soundRun, slackMillis: 2000 }))).toEqual([])
})

describe("end dates", () => {
  it("may be overtaken by a bulk extension at the same time", () => {
    const first = soundRun.operations.find(({ action }) => action === "extendAll")
    const operations = soundRun.operations.map((one) =>
      // Requested first, answered last, and made before the extension at second 3.
      one === first ? { ...one, start: begin + 1500, end: begin + 4500 } : one,
    )
    expect(textsOf(endDates, { ...soundRun, operations })).toEqual([])
  })

  const dateOf = (number: number): number => Date.UTC(2100, 0) + number

  const finding = (second: number, number: number, fields: Partial<Operation> = {}): Operation =>
    operation(second, { action: "find", endDate: dateOf(number), ...fields })

  it("stay as they are if a bulk extension shortens nobody", () => {
    expect(textsOf(endDates, withOperations(finding(5.8, 4)))).toEqual([])
    // The date of that bulk extension, which holds for nobody.
    expect(textsOf(endDates, withOperations(finding(5.8, -1)))).toHaveLength(1)
  })

  it("may be those of a bulk extension that an extension waits for, if it expects none", () => {
    const between = dateOf(3) + 0.5
    const waiting = (expectedEndDate: number | undefined): Run => ({
      ...soundRun,
      operations: [
        ...soundRun.operations.map((one) => {
          if (one.requestId === "request--1") return { ...one, endDate: between }
          if (one.endDate !== dateOf(4)) return one
          return { ...one, end: Math.max(one.end, begin + 6500), expectedEndDate }
        }),
        finding(6.2, 3.5),
      ],
      state: {
        ...soundRun.state,
        audit: soundRun.state.audit.map((row) =>
          row.requestId === "request--1" ? { ...row, to: between } : row,
        ),
      },
    })
    expect(textsOf(endDates, waiting(undefined))).toEqual([])
    expect(textsOf(endDates, waiting(dateOf(3)))).toHaveLength(1)
  })

  it("may be read while they are changed, in one order", () => {
    const operations = soundRun.operations.map((one) =>
      one.requestId === "request-2" ? { ...one, start: begin + 2500, end: begin + 3500 } : one,
    )
    const reading = (first: number, second: number): Run => ({
      ...soundRun,
      operations: [...operations, finding(2.7, first), finding(2.9, second)],
    })
    expect(textsOf(endDates, reading(1, 2))).toEqual([])
    expect(textsOf(endDates, reading(2, 2))).toEqual([])
    expect(textsOf(endDates, reading(2, 1))).toHaveLength(1)
  })

  it("that nobody has are read as well", () => {
    const gone = { userId: "1003", status: 404, endDate: undefined }
    expect(textsOf(endDates, withOperations(finding(9, 0, gone)))).toEqual([])
    expect(textsOf(endDates, withOperations(finding(8.5, 0, gone)))).toHaveLength(1)
  })

  it("are there from the beginning if they were set before the run", () => {
    const gone = { status: 404, endDate: undefined }
    expect(textsOf(endDates, withOperations(finding(1.5, 0)))).toEqual([])
    expect(textsOf(endDates, withOperations(finding(1.5, 0, gone)))).toHaveLength(1)
  })

  it("are not those that an extension expected", () => {
    const expecting = (number: number): Run => ({
      ...soundRun,
      operations: soundRun.operations.map((one) =>
        one.requestId === "request-2" ? { ...one, expectedEndDate: dateOf(number) } : one,
      ),
    })
    expect(textsOf(endDates, expecting(1))).toEqual([])
    expect(textsOf(endDates, expecting(0))).toHaveLength(1)
    const conflict = { action: "extend", status: 409, endDate: dateOf(12) } as const
    const refused = (found: number): Run =>
      withOperations(finding(3.5, 0, { ...conflict, conflictingDate: dateOf(found) }))
    expect(textsOf(endDates, refused(2))).toEqual([])
    expect(textsOf(endDates, refused(1))).toHaveLength(1)
  })

  it("are those from before a bulk extension that was undone", () => {
    const extendBy = 86_400_000
    const ofAll = { projectId: "p1", userId: undefined, from: undefined, to: undefined }
    const made = { ...ofAll, bulkExtensionId: "event-20" }
    const audit = [
      // The other member comes later.
      ...soundRun.state.audit.slice(0, -2),
      { ...made, action: "bulk_extended_by", extendBy, requestId: "request-20" },
      { ...made, action: "bulk_undone", requestId: "request-21" },
      ...soundRun.state.audit.slice(-2),
    ]
    const one = { userId: undefined, endDate: undefined }
    const operations = [
      ...soundRun.operations,
      operation(7, { ...one, action: "extendAll", extendBy, requestId: "request-20" }),
      operation(7.5, { ...one, action: "undo", requestId: "request-21" }),
    ]
    const found = (second: number, later: number) => {
      const read = finding(second, 4 + later)
      const state = { ...soundRun.state, audit }
      return textsOf(endDates, { ...soundRun, operations: [...operations, read], state })
    }
    expect(found(7.2, extendBy)).toEqual([])
    expect(found(7.2, 0)).toHaveLength(1)
    expect(found(7.8, 0)).toEqual([])
    expect(found(7.8, extendBy)).toHaveLength(1)
  })

  it("are lost if a bulk extension between two others is not seen", () => {
    const audit = soundRun.state.audit.map((row) =>
      row.requestId === "request-4" ? { ...row, from: soundRun.state.audit[2]?.to } : row,
    )
    const run = { ...soundRun, state: { ...soundRun.state, audit } }
    expect(textsOf(endDates, run)).toHaveLength(1)
  })
})
