/** Tickets: each lets a page in a browser follow the feed once, without the key that it stands for. */

import * as Data from "effect/Data"
import type { ApiKeyId } from "../base/ApiKeyId.ts"
import type { ProjectId } from "../base/Project.ts"
import type { TokenDigest } from "./ApiKey.ts"

/** A ticket as stored. */
export interface Ticket {
  readonly digest: TokenDigest
  /** Whose ticket it is: an API key's, or whom else the host identified. */
  readonly keyId: ApiKeyId
  /** The digest of the token of the API key; `undefined` if the host identified the sender. */
  readonly keyDigest: TokenDigest | undefined
  /** The projects whose feeds the ticket opens, if its key opens them; or `"all"` that the key opens. */
  readonly projects: ReadonlySet<ProjectId> | "all"
}

/** The key has as many tickets as it may have. None of them lives longer than a minute. */
export class TicketLimitReached extends Data.TaggedError("TicketLimitReached")<{
  readonly keyId: string
}> {
  override get message(): string {
    return `The API key "${this.keyId}" has too many tickets that were not used yet.`
  }
}
