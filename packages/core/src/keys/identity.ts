/** The principal behind a request, including those authenticated by the host. */

import * as Predicate from "effect/Predicate"
import { type FieldsOf, makeNameCheck } from "../base/field-names.ts"
import { ApiKeyId, copyOwn } from "../base/values.ts"
import { type Role, type Ticket, type TokenDigest, roles } from "./api-key.ts"

/** A principal identified by the host. Only own properties are read. */
export interface Identity {
  /**
   * Replaces an API key's id in rate limits and in the audit trail: 1 to 255 characters, without
   * control characters.
   */
  readonly keyId: string
  /** The ids of the principal's projects, or `"all"`. */
  readonly projects: ReadonlyArray<string> | ReadonlySet<string> | "all"
  /** The principal's role. Default: `"client"`. */
  readonly role?: Role | undefined
  /** Whether the principal may see everything its role allows, but change nothing. Default: `false`. */
  readonly readOnly?: boolean | undefined
}

/** A host's own authentication. Returns a request's principal, or `undefined` without one. */
export type Authenticate<Request> = (
  request: Request,
) => Identity | undefined | PromiseLike<Identity | undefined>

/** An authenticated request's principal: an API key, a ticket, or an identity from the host. */
export interface Principal {
  readonly keyId: ApiKeyId
  readonly role: Role
  /** The ids of the principal's projects. */
  readonly projects: ReadonlySet<string> | "all"
  /** Whether the sender may change nothing. */
  readonly isReadOnly: boolean
  /** The token's digest, for an API key. */
  readonly digest?: TokenDigest
  /** The ticket. It only allows following the feed. */
  readonly ticket?: Ticket
}

/** The principal for operations without a key. It opens no project. */
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

const fields: FieldsOf<Identity> = { keyId: true, projects: true, role: true, readOnly: true }

const checkFields = makeNameCheck(fields)

/**
 * Converts an identity from the host's authentication.
 *
 * @throws TypeError if the identity is invalid: the host's fault
 */
export const toPrincipal = (identity: Identity): Principal => {
  const fault = checkFields(identity)
  if (fault !== undefined) throw new TypeError(`in an identity, ${fault.message}`)
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
