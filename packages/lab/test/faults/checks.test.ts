import { describe, expect, it } from "vitest"
import { announcements } from "../../faults/checks/announcements.ts"
import { healing, limits, refusals, waits } from "../../faults/checks/answers.ts"
import { violationsOf } from "../../faults/checks/checks.ts"
import { deletions, deliveries } from "../../faults/checks/deliveries.ts"
import { endDates } from "../../faults/checks/end-dates.ts"
import type { Check, Fault, Operation, Run } from "../../faults/history.ts"
import { begin, dateOf, soundRun } from "./sound-run.ts"

/** Expects that a check finds nothing in a run, or so many violations. */
const expectFindings = (check: Check, run: Run, count: number) =>
  expect(check.find(run)).toHaveLength(count)

const withFault = (fault: Partial<Fault>): Run => ({
  ...soundRun,
  faults: soundRun.faults.map((one) => ({ ...one, ...fault })),
})

const withOperations = (...more: ReadonlyArray<Operation>): Run => ({
  ...soundRun,
  operations: [...soundRun.operations, ...more],
})

const extension = soundRun.operations.find(({ action }) => action === "extend")

/** A fault between two seconds. */
const fault = (kind: Fault["kind"], target: string | undefined, from: number, to: number) => ({
  kind,
  target,
  start: begin + 1000 * from,
  end: begin + 1000 * to,
})

const operation = (second: number, fields: Partial<Operation>): Operation => {
  if (extension === undefined) throw new Error("the run has no extension")
  const start = begin + 1000 * second
  return { ...extension, action: "listWebhooks", start, end: start + 20, ...fields }
}

it("nothing is wrong in a sound run", () => {
  expect(violationsOf(soundRun)).toEqual([])
})

describe("a fault excuses", () => {
  it("an answer at the server that it hits, until it has healed", () => {
    expectFindings(healing, withOperations(operation(23.4, { status: 503 })), 0)
    expectFindings(healing, withOperations(operation(23.6, { status: 503 })), 1)
  })

  it("no answer at another server", () => {
    const run = withOperations(operation(20.1, { status: 503, process: "s2" }))
    expectFindings(healing, run, 1)
  })

  it("no answer in another project, if it locks one", () => {
    expectFindings(healing, withFault({ kind: "projectLocked", target: "p1" }), 0)
    expectFindings(healing, withFault({ kind: "projectLocked", target: "p2" }), 1)
  })

  it("nothing long after its beginning, if new connections work at once", () => {
    const late = { start: begin + 16_000, end: begin + 30_000 }
    expectFindings(healing, withFault({ ...late, kind: "linkStalled" }), 0)
    expectFindings(healing, withFault({ ...late, kind: "linkDelayed" }), 1)
  })

  it("what begins after the port of a server that is asked to end has closed", () => {
    const run = withFault({ kind: "serverTerminated", end: begin + 21_000 })
    const early = operation(20.1, { action: "ready", status: 503 })
    const late = operation(20.5, { status: 0 })
    expectFindings(healing, { ...run, operations: [early, late] }, 0)
    const taken = operation(20.2, { status: 0, end: begin + 20_900 })
    expectFindings(healing, { ...run, operations: [taken] }, 1)
  })

  it("the time in which a server stands still", () => {
    const slow = withOperations(operation(20, { end: begin + 37_000 }))
    const stopped = (target: string) => ({
      ...slow,
      faults: [fault("serverStopped", target, 20, 23)],
    })
    expectFindings(waits, slow, 1)
    expectFindings(waits, stopped("s1"), 0)
    expectFindings(waits, stopped("s2"), 1)
  })

  it("a notification after a deletion that a process could not learn of", () => {
    const url = soundRun.operations[1]?.webhook?.url ?? ""
    const arrivals = soundRun.arrivals.map((arrival) => ({ ...arrival, url, at: begin + 1000 }))
    const late = { ...soundRun, arrivals: arrivals.slice(0, 1) }
    expectFindings(deletions, late, 1)
    for (const from of [0, 0.4]) {
      expectFindings(deletions, { ...late, faults: [fault("linkStalled", "s2", from, 0.9)] }, 0)
    }
  })

  it("a delay of events that it meets on their way, until it has healed", () => {
    const [first, ...others] = soundRun.arrivals
    if (first === undefined) throw new Error("the run has no arrival")
    // Its change is answered at second 2.
    const arrivingAt = (second: number, start: number): Run => ({
      ...soundRun,
      arrivals: [{ ...first, at: begin + 1000 * second }, ...others],
      faults: [fault("serverKilled", "s1", start, start + 0.5)],
    })
    expectFindings(deliveries, arrivingAt(5.5, 1), 1)
    expectFindings(deliveries, arrivingAt(5.5, 2.1), 0)
    expectFindings(deliveries, arrivingAt(5.7, 2.1), 1)
    expectFindings(deliveries, arrivingAt(5.5, 5.1), 1)
  })
})

describe("limits", () => {
  const burst = (count: number, second: number) =>
    withOperations(...Array.from({ length: count }, () => operation(second, { key: "greedy" })))

  it("admit a burst, and no more", () => {
    expectFindings(limits, burst(20, 10), 0)
    expectFindings(limits, burst(21, 10), 1)
  })

  it("may refuse what exceeds them, and nothing else", () => {
    const refused = (count: number) =>
      withOperations(
        ...Array.from({ length: count }, () => operation(10, { key: "greedy" })),
        operation(10, { key: "greedy", status: 429 }),
      )
    expectFindings(refusals, refused(20), 0)
    expectFindings(refusals, refused(19), 1)
  })

  it("may refuse a key once after the clock of the database has jumped", () => {
    const refusedAt = (...seconds: ReadonlyArray<number>): Run => ({
      ...withOperations(
        ...seconds.map((second) => operation(second, { key: "late", status: 429 })),
      ),
      faults: [fault("databaseClockJumped", undefined, 9, 10)],
    })
    expectFindings(refusals, refusedAt(14), 0)
    expectFindings(refusals, refusedAt(14, 16), 1)
  })

  it("are those of each process while the database does not answer", () => {
    expectFindings(limits, burst(60, 20.2), 0)
    expectFindings(limits, burst(100, 20.2), 1)
  })
})

describe("the clock of the database", () => {
  const hour = 3_600_000
  const jump = fault("databaseClockJumped", undefined, 7.5, 9)

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
    expectFindings(announcements, shifted(hour, [jump]), 0)
    expect(announcements.find(shifted(hour, []))).not.toEqual([])
    expectFindings(announcements, shifted(0, [jump]), 1)
  })
})

it("a reminder is missing if there was time for it", () => {
  const without = (run: Run): Run => {
    const events = run.state.events.filter(({ type }) => type !== "membership.expiring")
    return { ...run, state: { ...run.state, events } }
  }
  expectFindings(announcements, without(soundRun), 1)
  expectFindings(announcements, without({ ...soundRun, slackMillis: 2000 }), 0)
})

describe("end dates", () => {
  it("may be overtaken by a bulk extension at the same time", () => {
    const first = soundRun.operations.find(({ action }) => action === "extendAll")
    const operations = soundRun.operations.map((one) =>
      // Requested first, answered last, and made before the extension at second 3.
      one === first ? { ...one, start: begin + 1500, end: begin + 4500 } : one,
    )
    expectFindings(endDates, { ...soundRun, operations }, 0)
  })

  const finding = (second: number, number: number, fields: Partial<Operation> = {}): Operation =>
    operation(second, { action: "find", endDate: dateOf(number), ...fields })

  it("stay as they are if a bulk extension shortens nobody", () => {
    expectFindings(endDates, withOperations(finding(5.8, 4)), 0)
    // That bulk extension's date, which holds for nobody.
    expectFindings(endDates, withOperations(finding(5.8, -1)), 1)
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
    expectFindings(endDates, waiting(undefined), 0)
    expectFindings(endDates, waiting(dateOf(3)), 1)
  })

  it("may be read while they are changed, in one order", () => {
    const operations = soundRun.operations.map((one) =>
      one.requestId === "request-2" ? { ...one, start: begin + 2500, end: begin + 3500 } : one,
    )
    const reading = (first: number, second: number): Run => ({
      ...soundRun,
      operations: [...operations, finding(2.7, first), finding(2.9, second)],
    })
    expectFindings(endDates, reading(1, 2), 0)
    expectFindings(endDates, reading(2, 2), 0)
    expectFindings(endDates, reading(2, 1), 1)
  })

  it("that nobody has are read as well", () => {
    const gone = { userId: "1003", status: 404, endDate: undefined }
    expectFindings(endDates, withOperations(finding(9, 0, gone)), 0)
    expectFindings(endDates, withOperations(finding(8.5, 0, gone)), 1)
  })

  it("are there from the beginning if they were set before the run", () => {
    const gone = { status: 404, endDate: undefined }
    expectFindings(endDates, withOperations(finding(1.5, 0)), 0)
    expectFindings(endDates, withOperations(finding(1.5, 0, gone)), 1)
  })

  it("are not those that an extension expected", () => {
    const expecting = (number: number): Run => ({
      ...soundRun,
      operations: soundRun.operations.map((one) =>
        one.requestId === "request-2" ? { ...one, expectedEndDate: dateOf(number) } : one,
      ),
    })
    expectFindings(endDates, expecting(1), 0)
    expectFindings(endDates, expecting(0), 1)
    const conflict = { action: "extend", status: 409, endDate: dateOf(12) } as const
    const refused = (found: number): Run =>
      withOperations(finding(3.5, 0, { ...conflict, conflictingDate: dateOf(found) }))
    expectFindings(endDates, refused(2), 0)
    expectFindings(endDates, refused(1), 1)
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
    const expectFound = (second: number, later: number, count: number) => {
      const read = finding(second, 4 + later)
      const state = { ...soundRun.state, audit }
      expectFindings(endDates, { ...soundRun, operations: [...operations, read], state }, count)
    }
    expectFound(7.2, extendBy, 0)
    expectFound(7.2, 0, 1)
    expectFound(7.8, 0, 0)
    expectFound(7.8, extendBy, 1)
  })

  it("are lost if a bulk extension between two others is not seen", () => {
    const audit = soundRun.state.audit.map((row) =>
      row.requestId === "request-4" ? { ...row, from: soundRun.state.audit[2]?.to } : row,
    )
    const run = { ...soundRun, state: { ...soundRun.state, audit } }
    expectFindings(endDates, run, 1)
  })
})
