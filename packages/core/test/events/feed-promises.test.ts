/** An event consumer that keeps its cursor in the host's database. */

import { memory } from "@tenure/memory"
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { type Tenure, createTenure } from "../../src/tenure.ts"

const projectId = "p1"

let tenure: Tenure
let cursor: string
let ending: AbortController
const handled: Array<string> = []

beforeEach(async () => {
  handled.length = 0
  cursor = "start"
  ending = new AbortController()
  tenure = await createTenure({ stores: memory() })
  await tenure.memberships.createProject(projectId)
})

afterEach(async () => {
  vi.useRealTimers()
  await tenure.close()
})

const publish = (type: string) => tenure.events.publish({ projectId, type, data: {} })

type Options = Parameters<Tenure["events"]["consume"]>[0]

/** Consumes with the cursor in a variable. */
const consume = (options: Partial<Options> = {}) =>
  tenure.events.consume({
    projectId,
    transaction: (work) => work("transaction"),
    load: async () => cursor,
    handle: async (events) => void handled.push(...events.map(({ type }) => type)),
    save: async (next) => void (cursor = next),
    signal: ending.signal,
    ...options,
  })

/** Returns a promise, and a function to fulfil it. */
const gate = () => {
  let open = () => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { open, opened }
}

it("hands over events of the types asked for, as many at a time as it is told", async () => {
  const sizes: Array<number> = []
  const handle: Options["handle"] = async (events) => void sizes.push(events.length)
  for (const type of ["a", "b", "a", "a"]) await publish(type)
  const consuming = consume({ types: ["a"], limit: 2, handle })
  await expect.poll(() => sizes).toEqual([2, 1])
  ending.abort()
  await consuming
})

it("ends when Tenure closes, after the transaction that is open", async () => {
  await publish("a")
  const begun = gate()
  const committed = gate()
  const handle: Options["handle"] = () => {
    begun.open()
    return committed.opened
  }
  const consuming = consume({ handle }).then(() => handled.push("ended"))
  await begun.opened
  const closing = tenure.close()
  expect(cursor).toBe("start")
  committed.open()
  await closing
  await consuming
  expect(handled).toEqual(["ended"])
  expect(cursor).not.toBe("start")
})

it("processes nothing after its signal was aborted", async () => {
  await publish("a")
  await consume({ signal: AbortSignal.abort() })
  expect(handled).toEqual([])
})

it("leaves out what another has processed", async () => {
  await publish("a")
  const { cursor: afterA } = await tenure.events.read({ projectId, after: "start" })
  const loaded = ["start", afterA]
  const consuming = consume({ load: async () => loaded.shift() ?? afterA })
  await expect.poll(() => loaded).toEqual([])
  await publish("b")
  await expect.poll(() => handled).toEqual(["b"])
  ending.abort()
  await consuming
})

it("saves the cursor while no event comes, lest it grow too old", async () => {
  vi.useFakeTimers()
  const saved: Array<string> = []
  const consuming = consume({ save: async (next) => void saved.push((cursor = next)) })
  await vi.advanceTimersByTimeAsync(60_500)
  ending.abort()
  await consuming
  expect([saved.length, handled]).toEqual([3, []])
})

it("rejects with the error of the host, and goes on when it is called again", async () => {
  await publish("a")
  const failed = new Error("the host's")
  await expect(consume({ handle: () => Promise.reject(failed) })).rejects.toBe(failed)
  const save = () => {
    throw failed
  }
  await expect(consume({ save })).rejects.toBe(failed)
  expect([cursor, handled]).toEqual(["start", ["a"]])
})

it("rejects if the host has no cursor", async () => {
  cursor = ""
  await expect(consume()).rejects.toMatchObject({ _tag: "InvalidInput", field: "cursor" })
})
