/** How much of the body of a request is read, and when. */

import * as Struct from "effect/Struct"
import * as Route from "./Route.ts"

/** How an adapter reads the body of a request. */
export interface BodyLimit {
  /** The longest body, in bytes. The adapter reads no more. */
  readonly bytes: number
  /**
   * Whether the adapter leaves it to the core to read the body, because it may be long: only of
   * clients that may send it anything is kept.
   */
  readonly isDeferred: boolean
}

/** The limits of the operations that have their own. */
const ownLimits = new Map(
  Struct.keys(Route.table).flatMap((operation) => {
    const bytes = Route.maxBodyBytesOf(operation)
    return bytes === undefined ? [] : [[operation, { bytes, isDeferred: true }] as const]
  }),
)

// Spares requests with another method a second look for their path.
const methods = new Set<string>(
  [...ownLimits.keys()].map((operation) => Route.table[operation].method),
)

/**
 * Makes the function that returns the limit of a request, by its method and path.
 *
 * @param maxBodyBytes - the limit of all operations that have none of their own, in bytes
 */
export const make = (
  { match }: Route.Routes,
  basePath: string,
  maxBodyBytes: number,
): ((method: string, path: string) => BodyLimit) => {
  const usual: BodyLimit = { bytes: maxBodyBytes, isDeferred: false }
  return (method, path) => {
    if (!methods.has(method)) return usual
    const operation = match(path, basePath)?.value.get(method)
    return (operation && ownLimits.get(operation)) ?? usual
  }
}
