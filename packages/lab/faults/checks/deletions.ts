/** A deleted webhook gets nothing more, and what is on its way to it is aborted. */

import type { Arrival, Check, Operation, Run } from "../history.ts"
import { deadline } from "../trouble.ts"

/**
 * Another process may have an attempt in flight when the webhook is deleted, or start one that it has
 * claimed. It learns of the deletion within this time, unless a fault keeps the news from it.
 */
const newsMillis = 250

const deletionsOf = ({ operations }: Run): ReadonlyArray<Operation> =>
  operations.filter(({ action, status }) => action === "deleteWebhook" && status === 200)

/** Returns what is wrong if a webhook was deleted at `end`. */
const problemOf = (run: Run, { at, ended = Infinity, url }: Arrival, end: number) => {
  const latest = deadline(run, end, newsMillis)
  const after = (instant: number) =>
    `${(instant - end).toFixed(0)} ms after its deletion was answered`
  if (at > latest) return { text: `was sent to ${url} ${after(at)}`, at }
  if (ended > latest) return { text: `was on its way to ${url} until ${after(ended)}`, at: ended }
  return undefined
}

/** Checks deletions. */
export const deletions: Check = {
  name: "nothing is sent after a deletion",
  find: (run) => {
    const urls = new Map(
      run.operations.flatMap(({ webhook }) =>
        webhook === undefined ? [] : [[webhook.id, webhook.url] as const],
      ),
    )
    const deletedAt = new Map(
      deletionsOf(run).map(({ end, subject = "" }) => [urls.get(subject), end]),
    )
    return run.arrivals.flatMap((arrival) => {
      const end = deletedAt.get(arrival.url)
      const problem = end === undefined ? undefined : problemOf(run, arrival, end)
      if (problem === undefined) return []
      return [{ ...problem, text: `${arrival.headers["webhook-id"]} ${problem.text}` }]
    })
  },
}
