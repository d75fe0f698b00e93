/** Says in plain words why an attempt has failed. */

import type { Attempt } from "./Outbox.ts"
import * as Verdict from "./Verdict.ts"

const untrusted = "The certificate of the receiver is not trusted."
const unreachable = "The receiver cannot be reached."

/** What the codes mean that the transports and the stores use. */
const meanings: ReadonlyMap<string, string> = new Map([
  ["Timeout", "The receiver did not answer in time."],
  ["NoAnswer", "The receiver closed the connection without an answer."],
  ["AddressNotAllowed", "The receiver has an address that webhooks may not reach."],
  ["SecretUnreadable", "Nothing was sent, because the secret of the webhook cannot be read."],
  ["Unreadable", "Nothing was sent, because the event or the webhook cannot be read."],
  ["Defect", "The notification could not be sent because of an internal error."],
  ["ECONNREFUSED", "The receiver refused the connection."],
  ["ECONNRESET", "The receiver closed the connection."],
  ["EPIPE", "The receiver closed the connection."],
  ["ETIMEDOUT", unreachable],
  ["EHOSTUNREACH", unreachable],
  ["ENETUNREACH", unreachable],
  ["ENOTFOUND", "The host name of the receiver does not exist."],
  ["EAI_AGAIN", "The host name of the receiver cannot be resolved at the moment."],
  ["CERT_HAS_EXPIRED", "The certificate of the receiver has expired."],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "The certificate of the receiver is for another host name."],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", untrusted],
  ["SELF_SIGNED_CERT_IN_CHAIN", untrusted],
  ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", untrusted],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", untrusted],
])

const ofStatus = (status: number): string => {
  if (status === 410) return "The receiver answered 410: it wants no more notifications."
  return status >= 300 && status <= 399
    ? `The receiver answered ${status}. Redirects are not followed.`
    : `The receiver answered ${status}. Only 200 to 299 mean that it has the notification.`
}

/** Describes what went wrong; returns `undefined` if the attempt succeeded. */
export const describe = (result: Attempt["result"]): string | undefined => {
  if (result._tag === "Failed") {
    return meanings.get(result.reason) ?? `The notification could not be sent: ${result.reason}.`
  }
  return Verdict.isSuccess(result.status) ? undefined : ofStatus(result.status)
}
