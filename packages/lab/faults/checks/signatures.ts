/**
 * Notifications are signed with the secret of their webhook, and are the same in every attempt, unless a person
 * was erased in between.
 */

import { WebhookSecret, verifySignature } from "@tenure/core/signature"
import * as Result from "effect/Result"
import type { Arrival, Check, Run } from "../history.ts"
import { troubleOf } from "../trouble.ts"

const secretsOf = ({ operations, state }: Run): ReadonlyMap<string, string> =>
  new Map(
    [...operations.flatMap(({ webhook }) => webhook ?? []), ...state.webhooks].map(
      ({ secret, url }) => [url, secret],
    ),
  )

/** Whether a notification may have been signed by a clock that was off by more than receivers accept. */
const isByWrongClock = ({ faults }: Run, at: number): boolean =>
  faults
    .filter(({ kind }) => kind === "serverClockJumped")
    .map(troubleOf)
    .some(({ from, to }) => from <= at && at <= to)

const isSigned = (run: Run, { at, body, headers }: Arrival, secret: string): boolean => {
  const signedAt = 1000 * Number(headers["webhook-timestamp"])
  const now = isByWrongClock(run, at) ? signedAt : at
  return (
    WebhookSecret.is(secret) && Result.isSuccess(verifySignature({ headers, body, now }, [secret]))
  )
}

const withoutPerson = (body: string): string =>
  body.replaceAll(/"user_id":"\d+"/g, '"user_id":null')

const isSame = (body: string, stored: string): boolean =>
  body === stored || (stored.includes('"user_id":null') && withoutPerson(body) === stored)

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
        ...(secret === undefined || isSigned(run, arrival, secret)
          ? []
          : ["has no valid signature"]),
        ...(bodies.has(id) ? [] : ["is no event"]),
        ...(isSame(body, bodies.get(id) ?? body) ? [] : ["has another body than its event"]),
      ]
      return problems.map((problem) => ({ text: `${id} to ${url} ${problem}`, at }))
    })
  },
}
