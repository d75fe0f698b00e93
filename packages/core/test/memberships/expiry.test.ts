import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { Millis } from "../../src/base/time.ts"
import { ProjectId } from "../../src/base/values.ts"
import {
  EndDate,
  adjustmentOf,
  composeLog,
  effectiveEndDate,
} from "../../src/memberships/end-date.ts"
import {
  type ExpiryDecision,
  type LastAnnouncement,
  type TimedBulkExtension,
  dateSetAt,
  decideExpiry,
  makeDecideAnnouncement,
  reminderLeads,
} from "../../src/memberships/expiry.ts"
import { UserId } from "../../src/memberships/membership.ts"

const hour = 3_600_000

const reminders = fc.array(fc.integer({ min: 1, max: 50 }).map((hours) => Millis(hours * hour)))
const date = fc.integer({ min: 1, max: 100 }).map((hours) => EndDate(hours * hour))
const time = fc.integer({ min: 0, max: 120 }).map((hours) => hours * hour)
const announced = fc.option(
  fc.record({ endDate: date, lead: fc.integer({ min: 0, max: 50 }).map((n) => Millis(n * hour)) }),
  { nil: undefined },
)

describe("leadsOf", () => {
  it("returns each lead once, longest first, with the end itself", () => {
    const leads = reminderLeads([Millis(hour), Millis(7 * hour), Millis(hour)])
    expect(leads).toEqual([7 * hour, hour, 0])
    expect(reminderLeads([])).toEqual([0])
  })
})

describe("decide", () => {
  it("announces the shortest of what is due, and nothing that was announced or ended before", () => {
    fc.assert(
      fc.property(reminders, date, announced, time, time, (given, endDate, last, since, now) => {
        const leads = reminderLeads(given)
        const decision = decideExpiry(
          { leads, since },
          { endDate, dateSetAt: -Infinity, announced: last },
          now,
        )
        const due = leads.filter((lead) => endDate - lead <= now)
        const lead = Math.min(...due)
        const isOver = last?.endDate === endDate && last.lead <= lead
        expect(decision.announced).toEqual(
          due.length === 0 || isOver || endDate <= since ? undefined : { endDate, lead },
        )
      }),
    )
  })

  it("sets the alarm to the next lead", () => {
    fc.assert(
      fc.property(reminders, date, announced, time, (given, endDate, last, now) => {
        const leads = reminderLeads(given)
        const { alarm } = decideExpiry(
          { leads, since: 0 },
          { endDate, dateSetAt: -Infinity, announced: last },
          now,
        )
        const later = leads.map((lead) => endDate - lead).filter((at) => at > now)
        expect(alarm).toBe(later.length === 0 ? undefined : Math.min(...later))
      }),
    )
  })

  it("announces nothing twice, nor a reminder after a later one", () => {
    fc.assert(
      fc.property(reminders, date, time, time, (given, endDate, one, other) => {
        const rules = { leads: reminderLeads(given), since: 0 }
        const first = decideExpiry(
          rules,
          { endDate, dateSetAt: -Infinity, announced: undefined },
          Math.max(one, other),
        )
        const again = decideExpiry(
          rules,
          { endDate, dateSetAt: -Infinity, announced: first.announced },
          one,
        )
        expect(first.announced && again.announced).toBeUndefined()
      }),
    )
  })

  it("announces each lead in turn, and then nothing more, if asked whenever the alarm comes", () => {
    fc.assert(
      fc.property(reminders, date, (given, endDate) => {
        const leads = reminderLeads(given)
        const said: Array<LastAnnouncement> = []
        let alarm: number | undefined = -1000 * hour
        while (alarm !== undefined) {
          const decided: ExpiryDecision = decideExpiry(
            { leads, since: -1000 * hour },
            { endDate, dateSetAt: -Infinity, announced: said.at(-1) },
            alarm,
          )
          if (decided.announced !== undefined) said.push(decided.announced)
          ;({ alarm } = decided)
        }
        expect(said).toEqual(leads.map((lead) => ({ endDate, lead })))
      }),
    )
  })
})

describe("a reminder", () => {
  it("is announced if its time came after its end date was set, and an end whenever it was", () => {
    fc.assert(
      fc.property(reminders, date, time, time, (given, endDate, setAt, now) => {
        const leads = reminderLeads(given)
        const candidate = { endDate, dateSetAt: setAt, announced: undefined }
        const decision = decideExpiry({ leads, since: 0 }, candidate, now)
        const any = decideExpiry({ leads, since: 0 }, { ...candidate, dateSetAt: -1 }, now)
        const isLate =
          (any.announced?.lead ?? 0) > 0 && endDate - (any.announced?.lead ?? 0) <= setAt
        expect(decision.announced).toEqual(isLate ? undefined : any.announced)
        expect(decision.alarm).toBe(any.alarm)
      }),
    )
  })
})

describe("dateSetAt", () => {
  const change = fc.oneof(
    fc.record({ endDate: date, mode: fc.constantFrom("set" as const, "neverShorten" as const) }),
    fc.record({
      by: fc.integer({ min: 1, max: 50 }).map((hours) => Millis(hours * hour)),
      mode: fc.constant("extendBy" as const),
    }),
  )

  /** What happens to a project, one after another: bulk extensions, and undos of those before. */
  const steps = fc.array(fc.oneof(change, fc.nat({ max: 9 })), { maxLength: 12 })

  it("returns when the current end date came about, whatever was made and undone", () => {
    fc.assert(
      fc.property(date, steps, (ownDate, happening) => {
        const own = { endDate: ownDate, order: 0, setAt: 0 }
        let log: ReadonlyArray<TimedBulkExtension> = []
        let last = { endDate: ownDate, at: 0 }
        for (const [index, step] of happening.entries()) {
          const at = index + 1
          log =
            typeof step === "number"
              ? log.map((one, place) =>
                  place === step && !one.isUndone ? { ...one, isUndone: true, undoneAt: at } : one,
                )
              : [
                  ...log,
                  {
                    order: at,
                    adjustment: adjustmentOf(step),
                    isUndone: false,
                    setAt: at,
                    undoneAt: undefined,
                  },
                ]
          const endDate = effectiveEndDate(composeLog(log), own)
          if (endDate !== last.endDate) last = { endDate, at }
          expect(dateSetAt(log, own)).toBe(last.at)
          const later = { endDate: ownDate, order: at, setAt: at }
          expect(dateSetAt(log, later)).toBe(at)
        }
      }),
    )
  })
})

describe("judgeBy", () => {
  const judge = makeDecideAnnouncement({ leads: reminderLeads([Millis(hour)]), since: 0 })
  const candidate = {
    projectId: ProjectId("p1"),
    userId: UserId("1001"),
    endDate: EndDate(10 * hour),
    dateSetAt: 0,
    announced: undefined,
  }

  it("makes the event of an announcement, with an id by its time and what it announces", () => {
    const { announcement } = judge(candidate, 9 * hour)
    expect(announcement).toMatchObject({ action: "expiring", lead: hour })
    expect(announcement?.event).toMatchObject({
      type: "membership.expiring",
      at: 9 * hour,
      head: '{"type":"membership.expiring","timestamp":"1970-01-01T09:00:00.000Z","data":{"project_id":"p1","user_id":"1001","end_date":"1970-01-01T10:00:00.000Z","reminder":3600',
    })
    const { announcement: end } = judge(candidate, 10 * hour)
    expect(end).toMatchObject({ action: "expired", lead: 0 })
    expect(end?.event).toMatchObject({
      type: "membership.expired",
      at: 10 * hour,
      head: '{"type":"membership.expired","timestamp":"1970-01-01T10:00:00.000Z","data":{"project_id":"p1","user_id":"1001","end_date":"1970-01-01T10:00:00.000Z"',
    })
    expect(judge(candidate, 9 * hour).announcement?.event.id).toBe(announcement?.event.id)
    const others = [
      judge(candidate, 10 * hour),
      judge({ ...candidate, userId: UserId("1002") }, 9 * hour),
      judge({ ...candidate, projectId: ProjectId("p2") }, 9 * hour),
      judge({ ...candidate, endDate: EndDate(9.5 * hour) }, 9 * hour),
    ].map((outcome) => outcome.announcement?.event.id)
    expect(new Set([announcement?.event.id, ...others]).size).toBe(5)
  })
})
