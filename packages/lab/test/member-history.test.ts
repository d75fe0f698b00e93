import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "vitest"
import { memberHistoriesOf as ofFaults } from "../faults/member-histories.ts"
import { type MemberHistory, appendHistories } from "../member-history.ts"
import { memberHistoriesOf as ofSimulation } from "../simulation/member-histories.ts"
import { sabotages } from "../simulation/sabotages.ts"
import { simulate } from "../simulation/simulate.ts"
import { begin, dateOf, soundRun } from "./faults/sound-run.ts"

it("tells what clients learned of a member while things failed", () => {
  const histories = ofFaults(soundRun, "faults 1")
  expect(histories.map(({ project, run, sound, user }) => [run, project, user, sound])).toEqual([
    ["faults 1", "p1", "1001", true],
    ["faults 1", "p1", "1002", true],
    ["faults 1", "p1", "1003", true],
  ])
  const done = (second: number, client: string) => {
    const call = begin + 1000 * second
    return { client, call, return: call + 20, answer: "done" }
  }
  const [before, ...others] = histories[0]?.operations ?? []
  expect(before).toMatchObject({ client: "before", do: "set", date: dateOf(0) })
  expect(others.slice(0, -1)).toEqual([
    { ...done(2, "c1"), do: "extend", date: dateOf(1) },
    { ...done(3, "c1"), do: "extend", date: dateOf(2) },
    { ...done(4, "s1"), do: "extendAll", id: "request-3", date: dateOf(3) },
    { ...done(5.6, "s1"), do: "extendAll", id: "request--1", date: dateOf(-1), neverShorten: true },
    { ...done(5, "c1"), do: "extend", date: dateOf(4) },
    { ...done(5.5, "host"), do: "read", answer: "found", found: dateOf(4) },
  ])
  expect(others.at(-1)).toMatchObject({ client: "store", do: "read", found: dateOf(4) })
})

it("judges a member by what happened to this member alone", () => {
  const [first, ...others] = soundRun.state.memberships
  if (first === undefined) throw new Error("the run has no member")
  const memberships = [{ ...first, endDate: first.endDate + 1 }, ...others]
  const histories = ofFaults({ ...soundRun, state: { ...soundRun.state, memberships } }, "")
  expect(histories.filter(({ sound }) => !sound).map(({ user }) => user)).toEqual([first.userId])
})

const simulated = async (seed: number, name?: string): Promise<ReadonlyArray<MemberHistory>> => {
  const sabotage = sabotages.find((one) => one.name === name)
  return ofSimulation(await simulate(seed, sabotage && { sabotage }), name)
}

it("tells what clients learned of each member of a simulation", async () => {
  for (let seed = 1; seed <= 5; seed++) {
    for (const { operations, sound } of await simulated(seed)) {
      expect(sound).toBe(true)
      expect(operations.at(-1)).toMatchObject({ do: "read", client: "store" })
      for (const { answer, call, return: end } of operations) {
        if (answer === "unknown") expect(end).toBeNull()
        else expect(end).toBeGreaterThanOrEqual(call)
      }
    }
  }
})

it("tells that a member of a broken system is not sound", async () => {
  const name = "an extension is answered and not stored"
  const histories = [...(await simulated(1, name)), ...(await simulated(2, name))]
  const unsound = histories.filter(({ sound }) => !sound)
  expect(unsound.map(({ run }) => run)).toContain(`simulation 2, ${name}`)
})

it("appends a line of JSON for each history", async () => {
  const folder = await mkdtemp(join(tmpdir(), "histories-"))
  const file = join(folder, "histories.jsonl")
  const [first, second] = [ofFaults(soundRun, "one"), ofFaults(soundRun, "other")]
  appendHistories(file, first)
  appendHistories(file, second)
  const text = await readFile(file, "utf8")
  await rm(folder, { recursive: true })
  const lines = text.split("\n")
  expect(lines.pop()).toBe("")
  expect(lines).toHaveLength(first.length + second.length)
  expect(lines.map((line) => JSON.parse(line).run)).toEqual(
    [...first, ...second].map(({ run }) => run),
  )
})
