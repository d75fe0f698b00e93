/** A deleted webhook gets nothing more. */

import type { Check, Operation, Run } from "../history.ts"
import { deadline } from "../trouble.ts"

/**
 * Another process may start an attempt that it had claimed when the webhook was deleted. It learns of the
 * deletion within this time, unless a fault keeps the news from it.
 */
const newsMillis = 250

const deletionsOf = ({ operations }: Run): ReadonlyArray<Operation> =>
  operations.filter(({ action, status }) => action === "deleteWebhook" && status === 200)

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
    return run.arrivals.flatMap(({ at, headers, url }) => {
      const end = deletedAt.get(url)
      if (end === undefined || at <= deadline(run, end, newsMillis)) return []
      const late = (at - end).toFixed(0)
      const text = `${headers["webhook-id"]} was sent to ${url} ${late} ms after its deletion was answered`
      return [{ text, at }]
    })
  },
}
