/** The machine behind `tenure dev --from`: a copy, its clock, and its journal. */

import { EventEmitter } from "node:events"
import type { Event } from "@tenure/core"
import * as Effect from "effect/Effect"
import { describe, expect, it, onTestFinished } from "vitest"
import {
  commandOfKey,
  listenToKeys,
  moveClock,
  readClockCommand,
} from "../src/commands/clock-control.ts"
import { obeyKeys } from "../src/commands/dev-machine.ts"
import { makeJournal } from "../src/commands/machine-journal.ts"
import {
  type SentRequest,
  type TimeMachineOptions,
  startTimeMachine,
} from "../src/commands/time-machine.ts"

const start = Date.parse("2027-01-01T00:00:00.000Z")
const hour = 3_600_000
const day = 24 * hour
const projectId = "shop"
const url = "https://shop.example/hook"

type Stands = TimeMachineOptions["witness"]["stands"]

/** Opens a machine with members that end after the start by some time, and a webhook. */
const open = async (
  ends: Readonly<Record<string, number>> = {},
  status: TimeMachineOptions["statusOf"] = () => 204,
  stands: Stands = () => undefined,
) => {
  const events: Array<Event> = []
  const requests: Array<SentRequest> = []
  const machine = await startTimeMachine({
    start,
    projectId,
    witness: {
      event: (event) => void events.push(event),
      request: (request) => void requests.push(request),
      stands,
    },
    statusOf: status,
    onFault: (message) => {
      throw new Error(message)
    },
  })
  onTestFinished(machine.close)
  const { clock, tenure } = machine
  await tenure.memberships.createProject(projectId)
  const memberships = Object.entries(ends).map(([userId, after]) => ({
    userId,
    endDate: start + after,
  }))
  await tenure.memberships.import({ projectId, memberships })
  await clock.moveTo(start)
  const { secret } = await tenure.webhooks.create({ projectId, url })
  events.length = 0
  /** Each request's time after the start, type and user. */
  const shown = () =>
    requests.map(({ at, body }) => {
      const { data, type } = JSON.parse(body)
      return `${(at - start) / hour} h ${type.split(".")[1]} ${data.user_id}`
    })
  return { clock, tenure, events, requests, secret, shown }
}

describe("a copy", () => {
  it("announces each end once, with its reminders, at its time", async () => {
    const { clock, requests, shown } = await open({ long: 10 * day, short: 2 * day, over: -day })
    await clock.moveTo(start + 30 * day)
    expect(shown()).toEqual([
      "24 h expiring short",
      "48 h expired short",
      "72 h expiring long",
      "216 h expiring long",
      "240 h expired long",
    ])
    await clock.moveTo(start + 365 * day)
    expect(requests).toHaveLength(5)
  })

  it("announces what is overdue at its end, and expires it when the grace is over", async () => {
    const { clock, shown, tenure } = await open({ short: 2 * day })
    await tenure.memberships.updateProject({ projectId, grace: "P2D" })
    for (const [userId, ago] of [
      ["over", hour],
      ["gone", 3 * day],
    ] as const)
      await tenure.memberships.grant({ projectId, userId, endDate: start - ago })
    await clock.moveTo(start)
    const ends: Array<string> = []
    for (let next = await clock.next(); next !== undefined; next = await clock.next()) {
      ends.push(`${(next.at - start) / hour} h ${next.what}`)
      await clock.step()
    }
    expect(ends).toEqual([
      "24 h a reminder for short, 1 d before the end",
      "47 h the grace of over is over",
      "48 h the membership of short ends",
      "96 h the grace of short is over",
    ])
    expect(shown().slice(2)).toEqual([
      "24 h expiring short",
      "47 h expired over",
      "48 h overdue short",
      "96 h expired short",
    ])
  })

  it("resumes at the end of a pause, and announces the end later by the time paused", async () => {
    const { clock, shown, tenure } = await open({ endless: 3 * day })
    const paused = { projectId, pausedAt: start - day, endDate: start + 2 * day }
    const memberships = [{ ...paused, userId: "until", resumesAt: start + 3 * day }]
    await tenure.memberships.import({ projectId, memberships })
    await tenure.memberships.pause({ projectId, userId: "endless" })
    await clock.moveTo(start + 3 * day - 1)
    expect(await clock.next()).toEqual({ at: start + 3 * day, what: "the pause of until ends" })
    await clock.moveTo(start + 3 * day)
    await clock.moveTo(start + 4 * day)
    const reminder = { at: start + 5 * day, what: "a reminder for until, 1 d before the end" }
    expect(await clock.next()).toEqual(reminder)
    await clock.moveTo(start + 365 * day)
    expect(shown().slice(1)).toEqual([
      "0 h paused endless",
      "72 h resumed until",
      "120 h expiring until",
      "144 h expired until",
    ])
  })

  it("repeats no reminder from before the start, also after a bulk extension is undone", async () => {
    const { clock, shown, tenure } = await open({ soon: 3 * day })
    await tenure.memberships.extendAll({ projectId, by: "P1D", idempotencyKey: "once" })
    await clock.moveTo(start)
    expect(shown().slice(1)).toEqual([])
    await clock.moveTo(start + 4 * day)
    expect(shown().slice(1)).toEqual(["72 h expiring soon", "96 h expired soon"])

    const other = await open({ soon: 3 * day })
    const endDate = new Date(start + day)
    await other.tenure.memberships.extendAll({ projectId, endDate, mode: "neverShorten" })
    await other.clock.moveTo(start + day)
    expect(other.shown().slice(1)).toEqual([])
    await other.clock.moveTo(start + 3 * day)
    expect(other.shown().slice(1)).toEqual(["48 h expiring soon", "72 h expired soon"])
  })

  it("reminds of a membership that is granted after the start, but not at once", async () => {
    const { clock, shown, tenure } = await open()
    await tenure.memberships.grant({ projectId, userId: "new", endDate: start + 3 * day })
    // As at a server, this does not move the clock.
    await expect.poll(shown).toEqual(["0 h granted new"])
    await clock.moveTo(start + 2 * day)
    expect(shown().slice(1)).toEqual(["48 h expiring new"])
  })

  it("repeats failed requests as they would be, and disables the webhook after five days", async () => {
    const ends = { a: 1, b: 3.5 * day, c: 5.5 * day, d: 7.1 * day }
    const { clock, events, requests, tenure } = await open(ends, () => 503)
    await clock.moveTo(start + 2 * hour)
    const delays = requests.map(({ at }) => at - start - 1)
    // After 5 seconds, 5 minutes and 30 minutes, ± 20 %.
    expect(delays).toHaveLength(4)
    for (const [index, delay] of [0, 5000, 305_000, 2_105_000].entries())
      expect(Math.abs((delays[index] ?? NaN) - delay)).toBeLessThanOrEqual(0.2 * delay)
    await clock.moveTo(start + 30 * day)
    const types = events.map(({ type }) => type).filter((type) => type.startsWith("webhook."))
    expect(types).toEqual([...Array(3).fill("webhook.failing"), "webhook.disabled"])
    const [webhook] = await tenure.webhooks.health({ projectId })
    const since = (webhook?.disabled?.at ?? NaN) - start
    expect(since).toBeGreaterThanOrEqual(5 * day)
    expect(since).toBeLessThan(6 * day)
  })

  it("has secrets of its own in each run", async () => {
    const [first, second] = [await open(), await open()]
    expect(first.secret).not.toBe(second.secret)
  })
})

describe("the clock", () => {
  it("knows what comes next, and goes there", async () => {
    const { clock, shown } = await open({ long: 8 * day }, (to) => (to === url ? 503 : 204))
    const at = start + day
    expect(await clock.next()).toEqual({ at, what: "a reminder for long, 7 d before the end" })
    await clock.step()
    expect(clock.now()).toBe(at)
    expect(shown()).toEqual(["24 h expiring long"])
    const retry = await clock.next()
    expect(retry?.what).toBe("a delivery is tried again")
    await clock.step()
    expect(clock.now()).toBe(retry?.at)
    await clock.moveTo(start + 7.5 * day)
    expect((await clock.next())?.at).toBeLessThanOrEqual(start + 8 * day)
  })

  it("does not expect another attempt after a delivery", async () => {
    const { clock, shown } = await open({ long: 8 * day })
    await clock.step()
    expect(shown()).toEqual(["24 h expiring long"])
    const next = { at: start + 7 * day, what: "a reminder for long, 1 d before the end" }
    expect(await clock.next()).toEqual(next)
  })

  it("stands still if nothing is left to happen", async () => {
    const { clock } = await open({ over: -day })
    expect(await clock.next()).toBeUndefined()
    await clock.step()
    expect(clock.now()).toBe(start)
  })

  it("plays steadily, can be paused, and moves only one way at a time", async () => {
    const { clock } = await open({ one: 10 * day, other: 3000 * day })
    await clock.play(1000 * day, 100)
    expect(clock.isPlaying()).toBe(true)
    expect(await clock.next()).toBeUndefined()
    await expect.poll(clock.now).toBeGreaterThan(start)
    await clock.pause()
    const paused = clock.now()
    expect(paused).toBeLessThan(start + 1000 * day)
    expect(clock.isPlaying()).toBe(false)
    await new Promise((resolve) => {
      setTimeout(resolve, 200)
    })
    expect(clock.now()).toBe(paused)

    await clock.play(20 * day, 1)
    await expect.poll(clock.isPlaying).toBe(false)
    expect(clock.now()).toBe(paused + 20 * day)

    // A move ends a play, but not another move.
    await clock.play(1000 * day, 1000)
    const moving = clock.moveTo(start + 20_000 * day)
    await expect(clock.step().then(clock.step)).rejects.toThrow("The clock is moving")
    await moving
  })

  it("stops a long move where it is paused", async () => {
    const users = Array.from({ length: 3000 }, (_, index) => [`u${index}`, index * day + 1])
    const { clock, requests } = await open(Object.fromEntries(users))
    const moving = clock.moveTo(start + 3000 * day)
    await expect.poll(() => requests.length).toBeGreaterThan(0)
    await clock.pause()
    await moving
    expect(clock.now()).toBeLessThan(start + 3000 * day)
  })
})

/** A terminal whose keys are `data` events. */
const terminal = (setRawMode: (isRaw: boolean) => unknown = () => undefined) => {
  const stay = () => undefined
  const input = Object.assign(new EventEmitter(), { setRawMode, resume: stay, pause: stay })
  const press = (keys: string) => void input.emit("data", Buffer.from(keys))
  return { input, press }
}

describe("past the end of the clock", () => {
  it("refuses to move, by naming the field", async () => {
    const { clock } = await open()
    await clock.moveTo(clock.end - day)
    const message = expect.stringContaining("must lead to a time")
    for (const [field, command] of [
      ["advance", { _tag: "Advance", after: (now: number) => now + day + 1 }],
      ["to", { _tag: "To", time: clock.end + 1 }],
    ] as const)
      await expect(moveClock(clock, command)).rejects.toMatchObject({
        _tag: "InvalidInput",
        message,
        field,
      })
    expect(clock.now()).toBe(clock.end - day)
    await moveClock(clock, readClockCommand({ advance: "P1D" }))
    expect(clock.now()).toBe(clock.end)
  })

  it("says why keys do not move it", async () => {
    let stands = 0
    const { clock } = await open({}, undefined, () => void stands++)
    await clock.moveTo(clock.end)
    const lines: Array<string> = []
    const { input, press } = terminal()
    const obeying = obeyKeys(clock, input, (line) => lines.push(line))
    const ended = Effect.runPromise(Effect.scoped(obeying))
    for (const key of "dwm") press(key)
    const refused = expect.stringContaining("must lead to a time")
    await expect.poll(() => lines).toEqual([refused, refused, refused])
    // The others move it by nothing, and say where it is.
    for (const key of "n ") {
      const before = stands
      press(key)
      await expect.poll(() => stands).toBe(before + 1)
    }
    press("q")
    await ended
    expect(clock.now()).toBe(clock.end)
    expect(lines).toHaveLength(3)
  })
})

describe("commands", () => {
  it.each([
    [{ to: "2027-01-01T00:00:00.000Z" }, { _tag: "To", time: start }],
    [{ play: {} }, { _tag: "Play", days: 30, seconds: 60 }],
    [{ pause: true }, { _tag: "Pause" }],
    [{ step: true }, { _tag: "Step" }],
  ])("%j is one", (given, command) => {
    expect(readClockCommand(given)).toEqual(command)
  })

  it.each([
    ["1 day", day],
    ["P1M", 31 * day],
    ["PT36H", 1.5 * day],
    [1000, 1000],
  ])("advance by %s", (advance, millis) => {
    const command = readClockCommand({ advance })
    expect(command._tag === "Advance" && command.after(start)).toBe(start + millis)
  })

  it.each([
    null,
    [],
    {},
    "step",
    { advance: "+1mo" },
    { advance: "P101Y" },
    { to: "2027-01-31" },
    { step: false },
    { step: true, pause: true },
    { advance: "-1 day" },
    { advance: "1000000 days" },
    { advance: null },
    { to: "tomorrow" },
    { to: 1 },
    { play: { days: 0 } },
    { play: { days: 1, seconds: 0 } },
    { play: { days: 1e9 } },
    { other: true },
  ])("are refused: %j", (given) => {
    expect(() => readClockCommand(given)).toThrow(/must|known/)
  })

  const at = (isPlaying = false) => ({
    now: () => Date.parse("2027-01-31T00:00:00.000Z"),
    isPlaying: () => isPlaying,
  })

  it.each([
    [" ", at(), { _tag: "Play", days: 30, seconds: 60 }],
    [" ", at(true), { _tag: "Pause" }],
    ["m", at(), { _tag: "To", time: Date.parse("2027-02-28T00:00:00.000Z") }],
    ["\u0003", at(), "end"],
    ["x", at(), undefined],
  ])("come from the key %j of a terminal", (key, clock, command) => {
    expect(commandOfKey(key, clock)).toEqual(command)
  })

  it("come from keys until they are not listened to", () => {
    const raw: Array<boolean> = []
    const keys: Array<string> = []
    const { input, press } = terminal((isRaw) => raw.push(isRaw))
    const stop = listenToKeys(input, (key) => keys.push(key))
    press("n")
    press("\u001B[A")
    stop()
    press("d")
    expect([keys, raw]).toEqual([["n"], [true, false]])
  })
})

describe("the journal", () => {
  const requestAt = (at: number): SentRequest => ({
    at,
    url,
    body: JSON.stringify({ type: "membership.expired", data: { user_id: "1" } }),
    status: 503,
  })

  it("prints a bounded number of lines in a second, and counts the others", () => {
    const lines: Array<string> = []
    const journal = makeJournal((line) => lines.push(line))
    journal.request(requestAt(start))
    expect(lines).toEqual([])
    journal.tell()
    for (let count = 0; count < 1000; count++) journal.request(requestAt(start + count))
    journal.stands(start)
    expect(lines.length).toBeLessThan(200)
    expect(lines[0]).toBe(`2027-01-01T00:00:00.000Z  → 503  ${url}  membership.expired of 1`)
    expect(lines.at(-1)).toBe("It is 2027-01-01T00:00:00.000Z: 0 events, 1000 requests.")
    expect(lines.at(-2)).toMatch(/^… and \d+ × requests$/)
  })

  it("counts by day, and by month if there are many days", () => {
    const journal = makeJournal(() => undefined)
    /** The summary's first cells, from a row to another. */
    const rows = (from: number, to: number) =>
      journal
        .summary()
        .slice(from, to)
        .map((line) => line.split(/ +/))
    expect(journal.summary()).toEqual(["Nothing happens until then."])
    for (const after of [0, 0, 1]) journal.request(requestAt(start + after * day))
    expect(rows(0, 4)).toEqual([
      ["DAY", "REQUESTS", "FAILED"],
      ["2027-01-01", "2", "2"],
      ["2027-01-02", "1", "1"],
      ["all", "3", "3"],
    ])
    for (let after = 0; after < 90; after++) journal.request(requestAt(start + after * day))
    expect(rows(1, 4).map(([month]) => month)).toEqual(["2027-01", "2027-02", "2027-03"])
    expect(journal.summary().at(-12)).toBe("The first 10 of 93 requests that would be sent:")
  })
})
