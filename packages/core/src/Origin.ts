/** Where a change comes from. */

import type { ApiKeyId } from "./ApiKey.ts"

/** Who asked for a change, and in which request: an HTTP client's, or the host's own call. */
export interface Origin {
  /** The request's id; `undefined` for an in-process call. */
  readonly requestId: string | undefined
  /** The key the request came with; `undefined` for an in-process call. */
  readonly keyId: ApiKeyId | undefined
}

/** The origin of an in-process call. */
export const host: Origin = { requestId: undefined, keyId: undefined }
