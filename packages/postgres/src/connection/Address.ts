/** Where the server of a configuration is. */

import type { PgClientConfig } from "@effect/sql-pg/PgClient"
import * as Redacted from "effect/Redacted"

/** A host and port, or the path of a Unix socket, as `net.connect` takes them. */
export type Address = { readonly host: string; readonly port: number } | { readonly path: string }

const parse = ({ url }: PgClientConfig): URL | undefined =>
  url === undefined ? undefined : (URL.parse(Redacted.value(url)) ?? undefined)

const hostOf = (url: URL | undefined): string =>
  url?.searchParams.get("host") ??
  (decodeURIComponent(url?.hostname ?? "").replace(/^\[(.*)\]$/, "$1") || "localhost")

const portOf = (url: URL | undefined): number =>
  Number(url?.searchParams.get("port") ?? (url?.port || 5432))

/** Returns the address, by the rules of the driver: fields precede the URL, and its query the rest. */
export const addressOf = (config: PgClientConfig): Address => {
  const url = parse(config)
  const host = config.host ?? hostOf(url)
  const port = config.port ?? portOf(url)
  if (config.path !== undefined) return { path: config.path }
  return host.startsWith("/") ? { path: `${host}/.s.PGSQL.${port}` } : { host, port }
}
