/** Who sends a request, for hosts that authenticate requests themselves. */

import * as Predicate from "effect/Predicate"
import { ApiKeyId, copyOwn } from "../base/values.ts"
import { type Role, type Ticket, type TokenDigest, roles } from "./api-key.ts"

/** The sender of a request, as a host identifies it. Only its own properties are read. */
export interface Identity {
  /**
   * Takes the place of an API key's id: requests are counted under it, and the audit trail keeps it.
   * 1 to 255 characters, none of them a control character.
   */
  readonly keyId: string
  /** Ids of the projects that the sender may use, or `"all"`. */
  readonly projects: ReadonlyArray<string> | ReadonlySet<string> | "all"
  /** What the sender may do. Default: `"client"`. */
  readonly role?: Role | undefined
  /** Whether the sender may see what the role may see, and change nothing. Default: `false`. */
  readonly readOnly?: boolean | undefined
}

/** A host's own authentication. Returns who sent a request, or `undefined` if it is not authenticated. */
export type Authenticate<Request> = (
  request: Request,
) => Identity | undefined | PromiseLike<Identity | undefined>

/**
 * The sender of an authenticated request: the holder of an API key or of a ticket, or whom the host
 * identified.
 */
export interface Principal {
  readonly keyId: ApiKeyId
  readonly role: Role
  /** Ids of the projects that the sender may use. */
  readonly projects: ReadonlySet<string> | "all"
  /** Whether the sender may change nothing. */
  readonly isReadOnly: boolean
  /** The digest of the token, for the holder of an API key. */
  readonly digest?: TokenDigest
  /** The ticket, for its holder, who may only follow the feed. */
  readonly ticket?: Ticket
}

/** The sender of a request to an operation that needs no key. It opens no project. */
export const anonymous: Principal = {
  keyId: ApiKeyId("anonymous"),
  role: "client",
  projects: new Set(),
  isReadOnly: true,
}

const idsOf = (projects: ReadonlyArray<string> | ReadonlySet<string>): ReadonlySet<string> => {
  if (!(Array.isArray(projects) || projects instanceof Set)) {
    throw new TypeError('the projects of an identity must be an array, a set or "all"')
  }
  const ids = new Set<string>(projects)
  if (![...ids].every(Predicate.isString)) {
    throw new TypeError("the projects of an identity must be strings")
  }
  return ids
}

/**
 * Converts the identity that a host's authentication returned.
 *
 * @throws TypeError if the identity is invalid, which is a fault of the host
 */
export const toPrincipal = (identity: Identity): Principal => {
  const { keyId, projects, readOnly = false, role = "client" } = copyOwn(identity)
  if (!ApiKeyId.is(keyId)) {
    throw new TypeError(`the keyId of an identity must be ${ApiKeyId.expected}`)
  }
  if (!roles.includes(role)) {
    throw new TypeError(`the role of an identity must be one of ${roles.join(", ")}`)
  }
  if (typeof readOnly !== "boolean") {
    throw new TypeError("readOnly of an identity must be true or false")
  }
  return {
    keyId,
    role,
    projects: projects === "all" ? projects : idsOf(projects),
    isReadOnly: readOnly,
  }
}
