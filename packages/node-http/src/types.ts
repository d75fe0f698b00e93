/** The common parts of node:http and node:http2. */

import type { IncomingHttpHeaders } from "node:http"
import type { Duplex, Readable, Writable } from "node:stream"

/** A request from node:http or node:http2. */
export interface NodeRequest extends Readable {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly httpVersionMajor: number
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: ReadonlyArray<string>
  readonly socket: Duplex & {
    readonly remoteAddress?: string | undefined
    /** With TLS. */
    readonly encrypted?: boolean | undefined
  }
  readonly aborted: boolean
}

/** A response from node:http or node:http2. */
export interface NodeResponse extends Writable {
  readonly req: { readonly httpVersionMajor: number; readonly complete: boolean }
  readonly headersSent: boolean
  writeHead(status: number, headers: Record<string, string | number>): unknown
  /** Over HTTP/1.1. */
  flushHeaders?(): void
}
