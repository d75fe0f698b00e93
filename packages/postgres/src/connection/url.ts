/** Database URLs, and how connections to them are encrypted. */

import { readFile } from "node:fs/promises"
import type { PgClientConfig } from "@effect/sql-pg/PgClient"
import { Setting } from "@tenure/core/internal"
import { InvalidInput } from "@tenure/core/store"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"

/** What a URL says about its connections. */
interface Terms {
  /** The URL with a host, because the driver cannot read one without. */
  readonly url: string
  readonly applicationName: string
  readonly isEncrypted: boolean
  /** The file with the root certificates for the server, if they are not public. */
  readonly rootCertificates: string | undefined
  /** How long the first connection may take to open, if the URL says so. */
  readonly connectTimeout: Duration.Duration | undefined
}

// Parameters that have an effect, with any value.
const parameters = [
  "application_name",
  "dbname",
  "fallback_application_name",
  "host",
  "options",
  "password",
  "port",
  "sslmode",
  "sslrootcert",
  "user",
]

/**
 * Parameters from providers and other drivers, each with the values that ask for no more than Tenure does
 * anyway. Another value is refused, because it would have no effect.
 */
const granted: ReadonlyMap<string, RegExp> = new Map([
  // An intermediary has no certificate for the host, which is always verified. See `encryptionOf`.
  ["channel_binding", /^(disable|prefer|require)$/],
  ["client_encoding", /^(auto|utf-?8)$/i],
  ["connect_timeout", /^\d{1,9}$/],
  ["gssencmode", /^(disable|prefer)$/],
  ["load_balance_hosts", /^(disable|random)$/],
  // From Prisma. Tenure detects a pooler itself.
  ["pgbouncer", /^(true|false)$/],
  ["ssl", /^true$/],
  ["ssl_min_protocol_version", /^TLSv1(\.[012])?$/],
  ["sslaccept", /^strict$/],
  ["sslcompression", /^0$/],
  // Both lead to the same connection.
  ["sslnegotiation", /^(postgres|direct)$/],
  ["sslsni", /^1$/],
  // From Supabase, in URLs that Vercel shows. It only says where the URL comes from.
  ["supa", /^/],
  ["target_session_attrs", /^(any|read-write|primary)$/],
])

const passwords = "client certificates are not supported. Remove it, and log in with a password"
const connections = "remove it, and set maxConnections (DATABASE_MAX_CONNECTIONS)"
const schema = "remove it, and name the schema in the option schema (DATABASE_SCHEMA)"

/** Advice for refused parameters. */
const advice: ReadonlyMap<string, string> = new Map([
  ["connection_limit", connections],
  ["currentSchema", schema],
  ["max", connections],
  ["pool_size", connections],
  ["schema", schema],
  ["search_path", schema],
  ["ssl", "write sslmode=require or sslmode=disable"],
  ["sslcert", passwords],
  ["sslkey", passwords],
  ["sslpassword", passwords],
  ["uselibpqcompat", "remove it, and name the certificate of a private authority in sslrootcert"],
])

const encryptedModes = new Set(["require", "verify-ca", "verify-full"])

const isLocal = (host: string): boolean =>
  host === "localhost" || host === "[::1]" || host === "::1" || /^127(\.\d+){3}$/.test(host)

const isSocket = (host: string): boolean => host.startsWith("/")

/** A URL's authority: a user and a password, a host and a port, each of which may be missing. */
const authority = /^(postgres(?:ql)?:\/\/)([^/?#]*@)?(:\d*)?(?=[/?#]|$)/

/** Adds a host to a URL. libpq accepts one without, for example if a parameter names a socket. */
const withHost = (given: string): string =>
  given.replace(authority, (_, scheme: string, user = "", port = "") =>
    user === "" && port === "" ? scheme : `${scheme}${user}localhost${port}`,
  )

/** Parses a database URL. Returns `undefined` if it is invalid. */
export const parseUrl = (given: string): URL | undefined => {
  const url = URL.parse(withHost(given))
  if (url === null) return undefined
  try {
    for (const part of [url.username, url.password, url.hostname, url.pathname])
      decodeURIComponent(part)
    return url
  } catch {
    return undefined
  }
}

const hostOf = (url: URL): string =>
  url.searchParams.get("host") ?? (decodeURIComponent(url.hostname) || "localhost")

/** Returns a valid URL's host and port, for error messages, without secrets. */
export const placeOf = (given: string): string => {
  const url = parseUrl(given)
  if (url === undefined) return "an invalid URL"
  const host = hostOf(url)
  const port = url.searchParams.get("port") ?? (url.port || "5432")
  return isSocket(host) ? host : `${host}:${port}`
}

/** Whether connections are encrypted, or an error in the parameters about this. */
const encryptionOf = (url: URL): Result.Result<boolean, string> => {
  const host = hostOf(url)
  const mode = url.searchParams.get("sslmode") ?? (url.searchParams.has("ssl") ? "require" : null)
  if (mode !== null && mode !== "disable" && !encryptedModes.has(mode)) {
    return Result.fail(
      "must have sslmode=require, verify-ca, verify-full or disable: another mode may connect without encryption",
    )
  }
  // As in libpq, nothing is encrypted on a socket, whatever the mode.
  if (isSocket(host)) return Result.succeed(false)
  if (mode === null) return Result.succeed(url.searchParams.has("sslrootcert") || !isLocal(host))
  if (mode !== "disable") return Result.succeed(true)
  if (url.searchParams.has("sslrootcert"))
    return Result.fail("must have no sslrootcert with sslmode=disable")
  return url.searchParams.get("channel_binding") === "require"
    ? Result.fail("must have no channel_binding=require with sslmode=disable")
    : Result.succeed(false)
}

/** Whether a URL names several hosts, which libpq accepts. */
const hasSeveralHosts = (given: string): boolean =>
  /^[^:]+:\/\/([^/?#]*@)?[^/?#@]*,[^/?#@]*([/?#]|$)/.test(given) ||
  /[?&]host=[^&]*(,|%2c)/i.test(given)

/** Returns an error in the URL's parameters, if there is one. */
const problemOfParameters = (url: URL): string | undefined => {
  const all = [...url.searchParams]
  const refused = all.find(
    ([name, value]) => !parameters.includes(name) && granted.get(name)?.test(value) !== true,
  )
  if (refused !== undefined) {
    const [name] = refused
    // An at sign may belong to a password with a question mark.
    if (url.search.includes("@"))
      return `must have no other parameters than ${parameters.join(", ")}: encode ? in a password as %3F`
    const what = granted.has(name) ? `${name} with this value` : name
    const known = advice.get(name)
    return known === undefined
      ? `must have no parameter ${what}, which would have no effect: remove it`
      : `must have no parameter ${what}: ${known}`
  }
  return new Set(all.map(([name]) => name)).size < all.length
    ? "must have each parameter once"
    : undefined
}

const timeoutOf = (seconds: number): Duration.Duration | undefined =>
  seconds === 0 ? undefined : Duration.seconds(seconds)

const parse = (given: string): Result.Result<Terms, string> => {
  if (hasSeveralHosts(given)) {
    return Result.fail("must have one host: a name that leads to the primary")
  }
  const url = parseUrl(given)
  if (url === undefined) return Result.fail("must be a valid URL: encode special characters")
  const problem = problemOfParameters(url)
  if (problem !== undefined) return Result.fail(problem)
  const { searchParams } = url
  const certificates = searchParams.get("sslrootcert") ?? "system"
  return Result.map(encryptionOf(url), (isEncrypted) => ({
    url: withHost(given),
    applicationName:
      searchParams.get("application_name") ??
      searchParams.get("fallback_application_name") ??
      "tenure",
    isEncrypted,
    // In libpq, this means the public ones.
    rootCertificates: certificates === "system" ? undefined : certificates,
    connectTimeout: timeoutOf(Number(searchParams.get("connect_timeout") ?? 0)),
  }))
}

const text = Setting.guarded<string>(
  "a PostgreSQL URL, such as postgres://user:password@host:5432/database",
  (given) => typeof given === "string" && /^postgres(ql)?:\/\/./.test(given),
  // A URL may hold a password.
  (given) => {
    if (typeof given !== "string") return typeof given
    const scheme = /^(jdbc:)?[a-z][a-z\d+.-]{0,30}:\/\//i.exec(given)?.[0]
    return scheme === undefined ? "another text" : `text that begins with ${scheme}`
  },
)

const terms: Setting.Setting<string, Terms> = Setting.refine(text, (given, name) =>
  Result.mapError(parse(given), (problem) => new InvalidInput({ field: name, problem })),
)

/** An option for a database URL. */
export const databaseUrlOption: Setting.Setting<string, string> = {
  ...text,
  read: (given, name) => Result.andThen(terms.read(given, name), text.read(given, name)),
}

/**
 * Makes the client's configuration. Encrypted connections verify the server's certificate and host name.
 * Fails with `InvalidInput` if the URL is invalid, or the certificates file cannot be read.
 *
 * @param name - the name of the option or variable, for error messages
 */
export const toClientConfig = Effect.fnUntraced(function* (
  given: string,
  name: string,
): Effect.fn.Return<PgClientConfig, InvalidInput> {
  const { applicationName, connectTimeout, isEncrypted, rootCertificates, url } =
    yield* Effect.fromResult(terms.read(given, name))
  const common = { url: Redacted.make(url), applicationName, connectTimeout }
  if (!isEncrypted || rootCertificates === undefined) return { ...common, ssl: isEncrypted }
  const ca = yield* Effect.tryPromise({
    try: () => readFile(rootCertificates, "utf8"),
    catch: (cause) =>
      new InvalidInput({
        field: name,
        problem: `has an sslrootcert that cannot be read: ${String(cause)}`,
      }),
  })
  return { ...common, ssl: { ca } }
})
