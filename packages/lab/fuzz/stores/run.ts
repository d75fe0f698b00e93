/** Has several stores take the same steps, and compares their answers. */

import { Names } from "./names.ts"
import { type Side, type Store, type Time, openSide, remaining } from "./sides.ts"
import { type Request, type Step, stepsOf } from "./steps.ts"

/** A step that stores did not answer alike. */
export interface Difference {
  /** The steps up to the one with different answers. */
  readonly steps: ReadonlyArray<Step>
  /** What each store answered to the last one. */
  readonly answers: ReadonlyArray<{ readonly name: string; readonly answer: string }>
}

/** What a run has done. */
export interface Ran {
  /** How many requests were sent to each store. */
  readonly requests: number
  /** How many were answered with 200. */
  readonly valid: number
  readonly difference: Difference | undefined
}

type Passing = Extract<Step, { readonly _tag: "Pass" }>

interface Answer {
  readonly status: number
  readonly text: string
}

interface Player {
  readonly side: Side
  readonly names: Names
}

// Later ids sort after announcements', which are derived from what they announce.
const pauseMillis = 10

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const shown = ({ _tag, body, headers, method, path }: Request, names: Names): Request => ({
  _tag,
  method,
  path: names.showPath(path),
  headers: Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, names.show(value)]),
  ),
  body: names.show(body),
})

/** Whether a step reads a list by end dates, whose pages a store may end early. */
const isEnding = ({ path }: Request): boolean => path.includes("ending_before=")

interface Page {
  readonly total?: unknown
  readonly next?: unknown
  readonly data?: unknown
}

const pageOf = (value: unknown): Page => (typeof value === "object" && value !== null ? value : {})

const textOf = (item: unknown, field: string): string =>
  typeof item === "object" && item !== null
    ? String(Object.entries(item).find(([name]) => name === field)?.[1])
    : ""

const keyOf = (item: unknown): string => `${textOf(item, "end_date")} ${textOf(item, "user_id")}`

/** Orders members with the same end date, which come in any order, by their ids. */
const inOrder = (items: ReadonlyArray<unknown>): ReadonlyArray<unknown> => {
  const dates = items.map((item) => textOf(item, "end_date"))
  const isByDate = dates.every((date, index) => index === 0 || (dates[index - 1] ?? "") <= date)
  return isByDate ? items.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1)) : items
}

/** Follows a list to its end. Returns the answer to a request that would get all. */
const wholeList = async (side: Side, sent: Request, first: Page): Promise<Page> => {
  const start = sent.path.replace(/(?<=[?&])after=[^&]*&?/, "")
  const items: Array<unknown> = []
  let page = first
  while (true) {
    if (Array.isArray(page.data)) items.push(...page.data)
    if (typeof page.next !== "string") break
    const { body } = await side.send({ ...sent, path: `${start}&after=${page.next}` })
    page = pageOf(parse(body))
  }
  return { ...first, total: items.length, next: null, data: inOrder(items) }
}

/** Returns the path of an event's project. */
const projectIn = (body: string): string =>
  `/v2/projects/${/"project_id":"(\w+)"/.exec(body)?.[1] ?? ""}/`

// While the clock stands still, any attempt may be the last.
const lastAttempted = /(?<="last_attempt": \{\s+"at": "[^"]*",\s+"event_id": )"[^"]*"/g

/** Takes a step. Returns the answer, with names for what the store has minted. */
const take = async (
  { names, side }: Player,
  step: Exclude<Step, Passing>,
  isCounted: boolean,
): Promise<Answer> => {
  switch (step._tag) {
    case "Deliver": {
      // Webhooks' requests may come in any order.
      const delivered = await side.deliver((id) => names.known(id))
      const sent = delivered.toSorted((one, other) =>
        names.known(one.url + one.body) < names.known(other.url + other.body) ? -1 : 1,
      )
      const texts = sent.map(({ body, headers, url }) =>
        names.hideAll({ url, event_id: headers["webhook-id"], body: parse(body) }, projectIn(body)),
      )
      return { status: 0, text: JSON.stringify(texts, null, 1) }
    }
    case "Request": {
      const sent = shown(step, names)
      const { body, headers, status } = await side.send(sent)
      const parsed = parse(body)
      const whole =
        isEnding(step) && status === 200 ? await wholeList(side, sent, pageOf(parsed)) : parsed
      const shownHeaders = isCounted ? headers : { ...headers, [remaining]: "" }
      const answer = names.hideAll({ status, headers: shownHeaders, body: whole }, step.path)
      return { status, text: JSON.stringify(answer, null, 1).replaceAll(lastAttempted, '""') }
    }
  }
}

/** Lets time pass. Ends that have come are announced then, and later steps come after that. */
const pass = async (
  players: ReadonlyArray<Player>,
  time: Time,
  { millis }: Passing,
): Promise<ReadonlyArray<Answer>> => {
  const go = async (more: number): Promise<void> => {
    time.now += more
    await Promise.all(players.map(({ side }) => side.setTime(time.now)))
  }
  await go(millis)
  await Promise.all(players.map(({ side }) => side.gather(time.now + 1)))
  await go(1)
  await Promise.all(players.map(({ side }) => side.announce()))
  await go(pauseMillis)
  return []
}

/** Takes the steps on all stores, up to the first difference. */
const play = async (
  stores: ReadonlyArray<Store>,
  start: number,
  steps: ReadonlyArray<Step>,
): Promise<Ran> => {
  const time: Time = { now: start }
  const players: ReadonlyArray<Player> = await Promise.all(
    stores.map(async (store) => ({ side: await openSide(store, time), names: new Names(start) })),
  )
  let requests = 0
  let valid = 0
  let difference: Difference | undefined
  // A list that is followed takes as many tokens as it has pages, until time passes and all are there again.
  let isCounted = true
  for (const [index, step] of steps.entries()) {
    const answers =
      step._tag === "Pass"
        ? await pass(players, time, step)
        : await Promise.all(players.map((player) => take(player, step, isCounted)))
    if (step._tag === "Request") requests++
    if (answers[0]?.status === 200) valid++
    if (step._tag === "Pass") isCounted = true
    else if (step._tag === "Request" && isEnding(step)) isCounted &&= answers[0]?.status !== 200
    if (new Set(answers.map(({ text }) => text)).size > 1) {
      difference = {
        steps: steps.slice(0, index + 1),
        answers: answers.map(({ text }, at) => ({ name: stores[at]?.name ?? "", answer: text })),
      }
      break
    }
  }
  await Promise.all(players.map(({ side }) => side.close()))
  return { requests, valid, difference }
}

/**
 * Leaves out steps for as long as there still is a difference: first half the steps, then smaller parts.
 *
 * @param most - the most runs
 */
export const shrink = async (
  stores: ReadonlyArray<Store>,
  start: number,
  found: Difference,
  most: number,
): Promise<Difference> => {
  let smallest = found
  let runs = 0
  for (let size = found.steps.length >> 1; size >= 1; size >>= 1) {
    // From the end, so that what is left out leads to no new end.
    for (let end = smallest.steps.length - 1; end > 0 && runs < most; end -= size) {
      const begin = Math.max(0, end - size)
      const steps = smallest.steps.filter((_, index) => index < begin || index >= end)
      runs++
      const { difference } = await play(stores, start, steps)
      if (difference !== undefined) {
        end = Math.min(end, difference.steps.length)
        smallest = difference
      }
    }
  }
  return smallest
}

/** Takes a seed's steps on all stores. */
export const playSeed = (
  stores: ReadonlyArray<Store>,
  start: number,
  seed: number,
  count: number,
): Promise<Ran> => play(stores, start, stepsOf(seed, count))

const before = 3
const after = 12

/** Returns each answer's lines around the first one that differs. */
const excerpts = (answers: Difference["answers"]): ReadonlyArray<string> => {
  const all = answers.map(({ answer }) => answer.split("\n"))
  const [expected = [], ...others] = all
  const at = expected.findIndex((line, index) => others.some((lines) => lines[index] !== line))
  const begin = Math.max(0, at - before)
  return answers.flatMap(({ name }, index) => [
    `${name}, from line ${begin}:`,
    ...(all[index] ?? []).slice(begin, begin + before + after),
  ])
}

/** Reports a difference, so that somebody can repeat it. */
export const report = (seed: number, { answers, steps }: Difference): string =>
  [
    `The stores differ with seed ${seed}, after the last of these steps:`,
    ...steps.map((step) => `  ${JSON.stringify(step)}`),
    ...excerpts(answers),
    "",
  ].join("\n")
