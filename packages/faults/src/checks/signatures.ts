/** Notifications are signed with the secret of their webhook, and are the same in every attempt. */

import * as WebhookSignature from "@tenure/core/WebhookSignature"
import * as Result from "effect/Result"
import type { Arrival, Check, Run } from "../history.ts"

const secretsOf = ({ operations, state }: Run): ReadonlyMap<string, string> =>
  new Map(
    [...operations.flatMap(({ webhook }) => webhook ?? []), ...state.webhooks].map(
      ({ secret, url }) => [url, secret],
    ),
  )

const isSigned = ({ at, body, headers }: Arrival, secret: string): boolean =>
  WebhookSignature.Secret.is(secret) &&
  Result.isSuccess(WebhookSignature.verify({ headers, body, now: at }, [secret]))

/** Checks signatures. */
export const signatures: Check = {
  name: "signatures and ids are valid",
  find: (run) => {
    const secrets = secretsOf(run)
    const bodies = new Map(run.state.events.map(({ body, id }) => [id, body]))
    return run.arrivals.flatMap((arrival) => {
      const { at, body, headers, url } = arrival
      const id = headers["webhook-id"] ?? ""
      // Without one, the answer that created the webhook was lost, and then it was deleted.
      const secret = secrets.get(url)
      const problems = [
        ...(secret === undefined || isSigned(arrival, secret) ? [] : ["has no valid signature"]),
        ...(bodies.has(id) ? [] : ["is no event"]),
        ...(body === (bodies.get(id) ?? body) ? [] : ["has another body than its event"]),
      ]
      return problems.map((problem) => ({ text: `${id} to ${url} ${problem}`, at }))
    })
  },
}
