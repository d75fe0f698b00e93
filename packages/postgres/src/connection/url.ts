/** URLs of databases, and how connections to them are encrypted. */

import { readFile } from "node:fs/promises"
import type { PgClientConfig } from "@effect/sql-pg/PgClient"
import { Setting } from "@tenure/core/internal"
import { InvalidInput } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"

/** What a URL says of its connections. */
interface Terms {
  readonly applicationName: string
  readonly isEncrypted: boolean
  /** The file with the certificates that sign the server's, if they are not public. */
  readonly rootCertificates: string | undefined
}

// Other parameters, such as a misspelled `sslmode`, would have no effect.
const parameters = new Set([
  "application_name",
  "dbname",
  "host",
  "options",
  "password",
  "port",
  "sslmode",
  "sslrootcert",
  "user",
])

const encryptedModes = new Set(["require", "verify-ca", "verify-full"])

const isLocal = (host: string): boolean =>
  host === "localhost" ||
  host === "[::1]" ||
  host === "::1" ||
  host.startsWith("/") ||
  /^127(\.\d+){3}$/.test(host)

const hostOf = (url: URL): string =>
  url.searchParams.get("host") ?? (decodeURIComponent(url.hostname) || "localhost")

/** Returns the host and port of a valid URL, for error messages: nothing secret. */
export const placeOf = (given: string): string => {
  const url = new URL(given)
  const host = hostOf(url)
  const port = url.searchParams.get("port") ?? (url.port || "5432")
  return host.startsWith("/") ? host : `${host}:${port}`
}

/** Whether connections are encrypted, or what is wrong with the parameters that say so. */
const encryptionOf = (url: URL): Result.Result<boolean, string> => {
  const mode = url.searchParams.get("sslmode")
  const hasRoots = url.searchParams.has("sslrootcert")
  if (mode === null) return Result.succeed(hasRoots || !isLocal(hostOf(url)))
  if (encryptedModes.has(mode)) return Result.succeed(true)
  if (mode !== "disable") {
    return Result.fail(
      "must have sslmode=require, verify-ca, verify-full or disable: another mode may connect without encryption",
    )
  }
  return hasRoots
    ? Result.fail("must have no sslrootcert with sslmode=disable")
    : Result.succeed(false)
}

/** Whether a URL names several hosts, as libpq takes them. */
const hasSeveralHosts = (given: string): boolean =>
  /^[^:]+:\/\/([^/?#]*@)?[^/?#@]*,[^/?#@]*([/?#]|$)/.test(given) ||
  /[?&]host=[^&]*(,|%2c)/i.test(given)

const parse = (given: string): Result.Result<Terms, string> => {
  if (hasSeveralHosts(given)) {
    return Result.fail("must have one host: a name that leads to the primary")
  }
  const url = URL.parse(given)
  if (url === null) return Result.fail("must be a valid URL: encode special characters")
  // Which one it is may be part of a password with a question mark.
  const names = [...url.searchParams.keys()]
  if (names.some((name) => !parameters.has(name))) {
    return Result.fail(`must have no other parameters than ${[...parameters].join(", ")}`)
  }
  if (new Set(names).size < names.length) return Result.fail("must have each parameter once")
  return Result.map(encryptionOf(url), (isEncrypted) => ({
    applicationName: url.searchParams.get("application_name") ?? "tenure",
    isEncrypted,
    rootCertificates: url.searchParams.get("sslrootcert") ?? undefined,
  }))
}

const text = Setting.guarded<string>(
  "a PostgreSQL URL, such as postgres://user:password@host:5432/database",
  (given) => typeof given === "string" && /^postgres(ql)?:\/\/./.test(given),
  // A URL may hold a password.
  (given) => (typeof given === "string" ? "another text" : typeof given),
)

const terms: Setting.Setting<string, Terms> = Setting.refine(text, (given, name) =>
  Result.mapError(parse(given), (problem) => new InvalidInput({ field: name, problem })),
)

/** An option that is the URL of a database. */
export const databaseUrlOption: Setting.Setting<string, string> = {
  ...text,
  read: (given, name) => Result.andThen(terms.read(given, name), text.read(given, name)),
}

/**
 * Makes the configuration of a client. Encrypted connections verify the certificate of the server and
 * its host name. Fails with `InvalidInput` if the URL is invalid, or the file with certificates cannot
 * be read.
 *
 * @param name - the name of the option or variable, for error messages
 */
export const toClientConfig = Effect.fnUntraced(function* (
  given: string,
  name: string,
): Effect.fn.Return<PgClientConfig, InvalidInput> {
  const { applicationName, isEncrypted, rootCertificates } = yield* Effect.fromResult(
    terms.read(given, name),
  )
  const url = Redacted.make(given)
  if (rootCertificates === undefined) return { url, applicationName, ssl: isEncrypted }
  const ca = yield* Effect.tryPromise({
    try: () => readFile(rootCertificates, "utf8"),
    catch: (cause) =>
      new InvalidInput({
        field: name,
        problem: `has an sslrootcert that cannot be read: ${String(cause)}`,
      }),
  })
  return { url, applicationName, ssl: { ca } }
})
