/** Why a connection to a server has failed, in words. */

import * as Predicate from "effect/Predicate"

/** What helps, by the codes of errors. */
const advice: ReadonlyArray<readonly [RegExp, string]> = [
  [/^ERR_SSL_WRONG_VERSION_NUMBER$/, "The server speaks http there, not https: change the URL."],
  [
    /^(SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_(VERIFY|GET_ISSUER)|CERT_UNTRUSTED)/,
    "If a private authority has signed the certificate, name the file with its own in NODE_EXTRA_CA_CERTS.",
  ],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, "Use a name that is in the certificate of the server."],
]

const textOf = (error: object, name: string): string | undefined => {
  const found = Predicate.hasProperty(error, name) ? error[name] : undefined
  return typeof found === "string" && found !== "" ? found : undefined
}

/** The error that `fetch` wraps, if it does. */
const originOf = (fault: unknown): unknown =>
  fault instanceof Error && fault.cause instanceof Error ? fault.cause : fault

/** Says why `fetch` has failed. */
export const reasonOf = (fault: unknown): string => {
  const origin = originOf(fault)
  if (!(origin instanceof Error)) return String(origin)
  // The messages of OpenSSL name lines of its source.
  return textOf(origin, "reason") ?? origin.message
}

/** Says what may help. */
export const adviceOf = (fault: unknown): string => {
  const origin = originOf(fault)
  const code = origin instanceof Error ? (textOf(origin, "code") ?? "") : ""
  const [, found = "Check the URL, and that the server runs."] =
    advice.find(([pattern]) => pattern.test(code)) ?? []
  return found
}
