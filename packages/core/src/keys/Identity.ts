/** Who sends a request, for hosts that authenticate requests themselves. */

import * as Predicate from "effect/Predicate"
import { ApiKeyId } from "../base/ApiKeyId.ts"
import { owned } from "../base/Own.ts"

/** The sender of a request, as a host identifies it. Only its own properties are read. */
export interface Identity {
  /**
   * Takes the place of an API key's id: requests are counted under it, and the audit trail keeps it.
   * 1 to 255 characters, none of them a control character.
   */
  readonly keyId: string
  /** Ids of the projects that the sender may use. */
  readonly projects: ReadonlyArray<string> | ReadonlySet<string>
}

/** A host's own authentication. Returns who sent a request, or `undefined` if it is not authenticated. */
export type Authenticate<Request> = (
  request: Request,
) => Identity | undefined | PromiseLike<Identity | undefined>

/** The sender of an authenticated request: the holder of an API key, or whom the host identified. */
export interface Principal {
  readonly keyId: ApiKeyId
  /** Ids of the projects that the sender may use. */
  readonly projects: ReadonlySet<string>
}

/**
 * Converts the identity that a host's authentication returned.
 *
 * @throws TypeError if the identity is invalid, which is a fault of the host
 */
export const toPrincipal = (identity: Identity): Principal => {
  const { keyId, projects } = owned(identity)
  if (!ApiKeyId.is(keyId)) {
    throw new TypeError(`the keyId of an identity must be ${ApiKeyId.expected}`)
  }
  if (!(Array.isArray(projects) || projects instanceof Set)) {
    throw new TypeError("the projects of an identity must be an array or a set")
  }
  const ids = new Set<string>(projects)
  if (![...ids].every(Predicate.isString)) {
    throw new TypeError("the projects of an identity must be strings")
  }
  return { keyId, projects: ids }
}
