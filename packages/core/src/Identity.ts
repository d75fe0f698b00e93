/** Who sends a request, where the host knows better than an API key would tell. */

import * as Predicate from "effect/Predicate"
import type { ApiKeyId } from "./ApiKey.ts"
import { refined } from "./internal/refined.ts"

/** What a host says of the client of a request. */
export interface Identity {
  /**
   * What the requests of this client are counted under, and what the audit trail says: 1 to 255
   * characters, none of them a control character. It stands in for the id of an API key.
   */
  readonly keyId: string
  /** The ids of the projects that are open to it. */
  readonly projects: ReadonlyArray<string> | ReadonlySet<string>
}

/** A host's own authentication: whose a request is, or `undefined` for nobody's. */
export type Authenticate<Request> = (
  request: Request,
) => Identity | undefined | PromiseLike<Identity | undefined>

/** A client that is known, by its API key or by its host. */
export interface Client {
  readonly keyId: ApiKeyId
  readonly projects: ReadonlySet<string>
}

const pattern = /^[^\p{Cc}\p{Cs}]{1,255}$/u
const KeyId = refined<string, ApiKeyId>("keyId of an identity", (id) => pattern.test(id))

/**
 * Reads what a host says of a client.
 *
 * @throws TypeError where it says nothing that makes sense: that is the host's fault, not the client's
 */
export const toClient = ({ keyId, projects }: Identity): Client => {
  if (!(Array.isArray(projects) || projects instanceof Set)) {
    throw new TypeError("the projects of an identity are an array or a set")
  }
  const ids = new Set<string>(projects)
  if (typeof keyId !== "string" || ![...ids].every(Predicate.isString)) {
    throw new TypeError("the keyId of an identity and its projects are strings")
  }
  return { keyId: KeyId(keyId), projects: ids }
}
