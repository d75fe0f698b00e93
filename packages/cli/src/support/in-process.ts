/** The API in this process, on a database. Loaded only when a command uses one. */

import { userInfo } from "node:os"
import { type Fault, type Tenure, createTenure } from "@tenure/core"
import type { StorePorts } from "@tenure/core/store"
import { client, hasDatabase } from "@tenure/embedded"
import { fetchHandler } from "@tenure/fetch"
import { nodeTransport } from "@tenure/node-http"
import { postgres, postgresLayer } from "@tenure/postgres"
import { messageOf, readKeyring, readServers, serversFile } from "@tenure/postgres/ops/upkeep"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { Failure, operationFailed, usageFailure } from "./failure.ts"
import type { DatabaseTarget } from "./target.ts"

/** Returns the folder's path if a URL names a folder. */
export const folderPath = (url: string): string | undefined =>
  url.startsWith("file:") ? url.slice("file:".length) : undefined

/**
 * Fails if a URL names a folder without a database: opened, it would be a new one, and whatever is looked
 * for not there.
 */
export const requireDatabase = (url: string): Effect.Effect<void, Failure> => {
  const path = folderPath(url)
  return path === undefined || hasDatabase(path)
    ? Effect.void
    : Effect.fail(
        usageFailure(`There is no database in the folder ${path}. tenure migrate makes one there.`),
      )
}

const isTagged = (fault: unknown): fault is { readonly _tag: string; readonly message: string } =>
  fault instanceof Error && "_tag" in fault

/** Explains why a database cannot be used. */
export const explainStartFailure = (fault: unknown): Failure => {
  if (!isTagged(fault)) return operationFailed(String(fault))
  switch (fault._tag) {
    case "InvalidInput":
      return usageFailure(fault.message)
    case "SchemaMismatch":
      return operationFailed(fault.message)
    case "FolderUnusable":
    case "DatabaseUnusable":
      return new Failure({ kind: "unavailable", message: fault.message })
    default:
      return operationFailed(messageOf(fault))
  }
}

const storesOf = Effect.fnUntraced(function* ({
  schema,
  url,
}: DatabaseTarget): Effect.fn.Return<Layer.Layer<StorePorts, unknown>, Failure> {
  yield* requireDatabase(url)
  // A mistyped schema fails, instead of getting tables.
  const settings = { schema, migrate: false, maxConnections: 2 }
  const path = folderPath(url)
  if (path !== undefined) return Layer.provide(postgresLayer(settings), client({ path }))
  const file = serversFile(url)
  if (file === undefined) return postgres({ ...settings, url })
  const servers = yield* Effect.mapError(readServers(file), explainStartFailure)
  return postgres({ ...settings, servers })
})

// The audit trail names the operating-system user.
const identity = { keyId: `tenure:${userInfo().username}`, projects: "all", role: "admin" } as const

// The servers sending to it check its address.
const everywhere = ["0.0.0.0/0", "::/0"]

// The database's owner has no rate limits.
const unlimited = {
  perKey: { limit: 1_000_000, window: "1 second" },
  perAddress: false,
  burst: { limit: 1_000_000, window: "1 second" },
  suspension: false,
} as const

const ignore = () => undefined

/** Returns a replacement for `fetch`: a Tenure in this process answers. */
export const makeLocalFetch = (tenure: Tenure): typeof globalThis.fetch => {
  const answer = fetchHandler(tenure)
  return async (input, init) => (await answer(new Request(input, init))) ?? Response.error()
}

/** Writes a fault as a sentence: with its cause, unless the message is a sentence that has it already. */
const sentenceOf = ({ cause, message }: Fault): string =>
  message.endsWith(".") ? message : `${message}: ${messageOf(cause)}.`

/** The API on a database. */
interface InProcess {
  /** A replacement for `fetch`. */
  readonly fetch: typeof globalThis.fetch
  /** Why the latest request failed that did, as a sentence, for example a password that is refused. */
  readonly latestFault: () => string | undefined
}

/** Opens a database until the scope closes. Sends no webhooks: the database's servers do. */
export const openInProcess = Effect.fnUntraced(function* (
  place: DatabaseTarget,
): Effect.fn.Return<InProcess, Failure, Scope.Scope> {
  const stores = yield* storesOf(place)
  const encryption = yield* Effect.mapError(readKeyring, explainStartFailure)
  let latestFault: string | undefined
  const tenure = yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: () =>
        createTenure({
          stores,
          transport: nodeTransport,
          authenticate: () => identity,
          rateLimits: unlimited,
          // Without a key, `doctor` says so, and only what shows secrets fails.
          webhooks: {
            dispatch: false,
            encryption,
            missingKeys: "allow",
            allowedNetworks: everywhere,
          },
          logger: { info: ignore, warn: ignore, error: ignore },
          onError: (fault) => {
            latestFault = sentenceOf(fault)
          },
        }),
      catch: explainStartFailure,
    }),
    ({ close }) => Effect.promise(close),
  )
  return { fetch: makeLocalFetch(tenure), latestFault: () => latestFault }
})
