import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { Millis } from "../../src/base/time.ts"
import { ProjectId } from "../../src/base/values.ts"
import {
  EndDate,
  adjustmentOf,
  composeLog,
  effectiveEndDate,
  lastEndDate,
} from "../../src/memberships/end-date.ts"
import {
  type ExpiryDecision,
  type LastAnnouncement,
  type TimedBulkExtension,
  changeTime,
  dateOrigin,
  decideExpiry,
  expiredLead,
  makeDecideAnnouncement,
  reminderLeads,
} from "../../src/memberships/expiry.ts"
import { UserId } from "../../src/memberships/membership.ts"

const hour = 3_600_000

const lead = (min: number) => fc.integer({ min, max: 50 }).map((hours) => Millis(hours * hour))
const allLeads = fc.array(lead(1)).map(reminderLeads)
const date = fc.integer({ min: 1, max: 100 }).map((hours) => EndDate(hours * hour))
const time = fc.integer({ min: 0, max: 120 }).map((hours) => hours * hour)
const graces = fc.oneof(fc.constant(Millis(0)), lead(1))
const announced = fc.option(
  fc.record({ endDate: date, lead: fc.oneof(lead(0), fc.constant(expiredLead)) }),
  { nil: undefined },
)

describe("the leads", () => {
  it("are each reminder once, longest first, with the end itself", () => {
    const leads = reminderLeads([Millis(hour), Millis(7 * hour), Millis(hour)])
    expect(leads).toEqual([7 * hour, hour, 0])
    expect(reminderLeads([])).toEqual([0])
  })
})

/** A membership without a history. */
const blank = {
  dateSetAt: -Infinity,
  isSetWithOthers: false,
  announced: undefined,
  grace: Millis(0),
  graceSetAt: undefined,
}

describe("the decision on a membership", () => {
  const decide = (
    leads: ReadonlyArray<Millis>,
    candidate: {
      readonly endDate: EndDate
      readonly grace?: Millis
      readonly announced?: LastAnnouncement | undefined
      readonly dateSetAt?: number
    },
    now: number,
    since = 0,
  ): ExpiryDecision => decideExpiry({ leads, since }, { ...blank, ...candidate }, now)

  /** What is announced, first to last, and when. */
  const timesOf = (leads: ReadonlyArray<Millis>, endDate: EndDate, grace: Millis) => [
    ...leads.filter((one) => one > 0).map((one) => ({ lead: one, at: endDate - one })),
    ...(grace > 0 ? [{ lead: 0, at: Number(endDate) }] : []),
    { lead: expiredLead, at: endDate + grace },
  ]

  it("announces the last of what is due, and nothing that was announced or ended before", () => {
    fc.assert(
      fc.property(
        allLeads,
        date,
        graces,
        announced,
        time,
        time,
        (leads, endDate, grace, last, since, now) => {
          const decision = decide(leads, { endDate, grace, announced: last }, now, since)
          const times = timesOf(leads, endDate, grace)
          const due = times.findLast(({ at }) => at <= now)
          const isOver =
            due === undefined ||
            (last?.endDate === endDate && last.lead <= due.lead) ||
            (endDate <= since && due.at <= since) ||
            (endDate <= since && due.lead > 0)
          expect(decision.announced).toEqual(isOver ? undefined : { endDate, lead: due?.lead })
          expect(decision.alarm).toBe(times.find(({ at }) => at > now)?.at)
        },
      ),
    )
  })

  it("announces nothing twice, nor a reminder after a later one", () => {
    fc.assert(
      fc.property(allLeads, date, time, time, (leads, endDate, one, other) => {
        const first = decide(leads, { endDate }, Math.max(one, other))
        const again = decide(leads, { endDate, announced: first.announced }, one)
        expect(first.announced && again.announced).toBeUndefined()
      }),
    )
  })

  it("announces each lead in turn, and then nothing more, if asked whenever the alarm comes", () => {
    fc.assert(
      fc.property(allLeads, date, graces, (leads, endDate, grace) => {
        const said: Array<LastAnnouncement> = []
        let alarm: number | undefined = -1000 * hour
        while (alarm !== undefined) {
          const decided = decide(
            leads,
            { endDate, grace, announced: said.at(-1) },
            alarm,
            -1000 * hour,
          )
          if (decided.announced !== undefined) said.push(decided.announced)
          ;({ alarm } = decided)
        }
        const all = timesOf(leads, endDate, grace).map(({ lead: one }) => ({ endDate, lead: one }))
        expect(said).toEqual(all)
      }),
    )
  })

  it("announces a reminder if its time came after its end date was set, and an end whenever it was", () => {
    fc.assert(
      fc.property(allLeads, date, time, time, (leads, endDate, setAt, now) => {
        const decision = decide(leads, { endDate, dateSetAt: setAt }, now)
        const any = decide(leads, { endDate, dateSetAt: -1 }, now)
        const anyLead = any.announced?.lead ?? 0
        const isLate = anyLead > 0 && endDate - anyLead <= setAt
        expect(decision.announced).toEqual(isLate ? undefined : any.announced)
        expect(decision.alarm).toBe(any.alarm)
      }),
    )
    // At exactly the reminder's time, the date was set too late for it.
    const leads = reminderLeads([Millis(hour)])
    const endDate = EndDate(2 * hour)
    const announcedIf = (setAt: number) =>
      decide(leads, { endDate, dateSetAt: setAt }, hour).announced
    expect([announcedIf(hour - 1), announcedIf(hour)]).toEqual([{ endDate, lead: hour }, undefined])
  })

  /** What is announced if it is decided at a time, and then whenever the alarm comes. */
  const announcedFrom = (
    start: number,
    leads: ReadonlyArray<Millis>,
    candidate: Parameters<typeof decideExpiry>[1],
    hold = Millis(0),
  ) => {
    const said: Array<LastAnnouncement & { readonly at: number }> = []
    for (let now: number | undefined = start; now !== undefined;) {
      const decided = decideExpiry(
        { leads, since: -1, hold },
        { ...candidate, announced: said.at(-1) },
        now,
      )
      if (decided.announced !== undefined) said.push({ ...decided.announced, at: now })
      if (decided.alarm !== undefined) expect(decided.alarm).toBeGreaterThan(now)
      now = decided.alarm
    }
    return said
  }

  it("holds all after a change of many, and then announces as if it looked for the first time", () => {
    fc.assert(
      fc.property(allLeads, date, graces, time, lead(0), (leads, endDate, grace, setAt, hold) => {
        const alone = { ...blank, endDate, grace, dateSetAt: setAt }
        const held = announcedFrom(setAt, leads, { ...alone, isSetWithOthers: true }, hold)
        expect(held).toEqual(announcedFrom(setAt + hold, leads, alone))
        expect(announcedFrom(setAt, leads, alone, hold)).toEqual(announcedFrom(setAt, leads, alone))
      }),
    )
  })

  it("holds ends after a new grace, and no reminders", () => {
    const remindersOf = (said: ReadonlyArray<LastAnnouncement>) =>
      said.filter((one) => one.lead > 0)
    const endsOf = (said: ReadonlyArray<LastAnnouncement>) => said.filter((one) => one.lead <= 0)
    fc.assert(
      fc.property(allLeads, date, graces, time, lead(0), (leads, endDate, grace, at, hold) => {
        const candidate = { ...blank, endDate, grace, graceSetAt: at }
        const held = announcedFrom(at, leads, candidate, hold)
        expect(remindersOf(held)).toEqual(remindersOf(announcedFrom(at, leads, candidate)))
        expect(endsOf(held)).toEqual(endsOf(announcedFrom(at + hold, leads, candidate)))
      }),
    )
  })

  it("holds no ends of dates that were set after the grace", () => {
    const candidate = { ...blank, endDate: EndDate(hour), grace: Millis(hour), graceSetAt: 0 }
    const leadAt = (dateSetAt: number) =>
      decideExpiry(
        { leads: [Millis(0)], since: -1, hold: Millis(10 * hour) },
        { ...candidate, dateSetAt },
        hour,
      ).announced?.lead
    expect([leadAt(0), leadAt(1)]).toEqual([undefined, 0])
  })

  it("holds nothing for a change by a clock that was far ahead", () => {
    const rules = { leads: [Millis(0)], since: 0, hold: Millis(hour) }
    const decidedAt = (dateSetAt: number) =>
      decideExpiry(
        rules,
        { ...blank, endDate: EndDate(hour), dateSetAt, isSetWithOthers: true },
        10 * hour,
      )
    expect(decidedAt(10.5 * hour)).toEqual({ announced: undefined, alarm: 11.5 * hour })
    expect(decidedAt(12 * hour).announced).toEqual({ endDate: hour, lead: expiredLead })
    // An honest change is held beside one.
    const both = { ...blank, endDate: EndDate(hour), dateSetAt: 9.5 * hour, graceSetAt: 90 * hour }
    expect(decideExpiry(rules, { ...both, isSetWithOthers: true }, 10 * hour)).toEqual({
      announced: undefined,
      alarm: 10.5 * hour,
    })
  })
})

describe("the change that set an end date", () => {
  const change = fc.oneof(
    fc.record({ endDate: date, mode: fc.constantFrom("set" as const, "neverShorten" as const) }),
    fc.record({ by: lead(1), mode: fc.constant("extendBy" as const) }),
  )

  /** A project's changes in order: bulk extensions, and undos for earlier ones. */
  const steps = fc.array(fc.oneof(change, fc.nat({ max: 9 })), { maxLength: 12 })

  it("has the later time of the two clocks", () => {
    expect([changeTime(1, 2), changeTime(2, 1)]).toEqual([2, 2])
  })

  it("is the one by which the current date came about, whatever was made and undone", () => {
    fc.assert(
      // Undoing a bulk extension from before the member's own date changes nothing.
      fc.property(date, fc.nat({ max: 12 }), steps, (ownDate, since, happening) => {
        const own = { endDate: ownDate, order: since, setAt: since, isSetWithOthers: false }
        let log: ReadonlyArray<TimedBulkExtension> = []
        let last = { endDate: ownDate, dateSetAt: since, isSetWithOthers: false }
        for (const [index, step] of happening.entries()) {
          const at = index + 1
          if (typeof step === "number") {
            log = log.map((one, place) =>
              place === step && !one.isUndone ? { ...one, isUndone: true, undoneAt: at } : one,
            )
          } else {
            const adjustment = adjustmentOf(step)
            log = [
              ...log,
              { order: at, adjustment, isUndone: false, setAt: at, undoneAt: undefined },
            ]
          }
          const endDate = effectiveEndDate(composeLog(log), own)
          if (endDate !== last.endDate) last = { endDate, dateSetAt: at, isSetWithOthers: true }
          expect({ endDate, ...dateOrigin(log, own) }).toEqual(last)
          for (const isSetWithOthers of [false, true]) {
            const again = { endDate: ownDate, order: at, setAt: at, isSetWithOthers }
            expect(dateOrigin(log, again)).toEqual({ dateSetAt: at, isSetWithOthers })
          }
        }
      }),
    )
  })
})

describe("the event of an announcement", () => {
  const decide = makeDecideAnnouncement({ leads: reminderLeads([Millis(hour)]), since: 0 })
  const candidate = {
    projectId: ProjectId("p1"),
    userId: UserId("1001"),
    endDate: EndDate(10 * hour),
    ...blank,
  }

  it.each([
    ["expiring", 9, 0, "09:00:00.000Z", hour, ',"reminder":3600'],
    ["overdue", 10, 2, "10:00:00.000Z", 0, ',"grace_until":"1970-01-01T12:00:00.000Z"'],
    ["expired", 12, 2, "12:00:00.000Z", expiredLead, ""],
    ["expired", 10, 0, "10:00:00.000Z", expiredLead, ""],
  ])("says what it announces: %s", (action, hours, grace, timestamp, before, more) => {
    const type = `membership.${action}`
    const data = `"project_id":"p1","user_id":"1001","end_date":"1970-01-01T10:00:00.000Z"${more}`
    const head = `{"type":"${type}","timestamp":"1970-01-01T${timestamp}","data":{${data}`
    expect(decide({ ...candidate, grace: Millis(grace * hour) }, hours * hour)).toMatchObject({
      announcement: { action, lead: before, event: { type, at: hours * hour, head } },
    })
  })

  it("ends grace with the year 9999", () => {
    const late = { ...candidate, endDate: EndDate(lastEndDate - hour), grace: Millis(2 * hour) }
    const { announcement } = decide(late, lastEndDate - 1)
    expect(announcement?.event.head).toContain('"grace_until":"9999-12-31T23:59:59.999Z"')
  })

  it("has an id by its time and what it announces", () => {
    const idOf = (parts: Partial<typeof candidate>, hours = 9) =>
      decide({ ...candidate, ...parts }, hours * hour).announcement?.event.id
    expect(idOf({})).toBe(idOf({}))
    const all = [
      idOf({}),
      idOf({}, 10),
      idOf({ userId: UserId("1002") }),
      idOf({ projectId: ProjectId("p2") }),
      idOf({ endDate: EndDate(9.5 * hour) }),
    ]
    expect(new Set(all).size).toBe(5)
  })
})
