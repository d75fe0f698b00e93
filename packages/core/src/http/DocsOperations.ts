/** The operations that show how the API is called. */

import * as Effect from "effect/Effect"
import type { Document } from "./docs/OpenApi.ts"
import type { Verbatim } from "./Envelope.ts"
import type { OperationsOn } from "./Operation.ts"

const verbatim = (body: string, headers: Verbatim["headers"]): Verbatim => ({
  _tag: "Verbatim",
  headers: { ...headers, "X-Content-Type-Options": "nosniff" },
  body,
})

/** Loads the document. Programs that never show it do not load it. */
const load = async (basePath: string): Promise<Document> => {
  const { document } = await import("./docs/document.ts")
  return basePath === ""
    ? document
    : { ...document, servers: document.servers.map((server) => ({ ...server, url: basePath })) }
}

const printPage = async (basePath: string): Promise<Verbatim> => {
  const [{ contentSecurityPolicy, print }, document] = await Promise.all([
    import("./docs/Html.ts"),
    load(basePath),
  ])
  return verbatim(print(document), {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": contentSecurityPolicy,
    "Referrer-Policy": "no-referrer",
  })
}

const printDocument = async (basePath: string): Promise<Verbatim> =>
  verbatim(JSON.stringify(await load(basePath)), { "Content-Type": "application/json" })

/**
 * Makes the operations. The document and the page are made once, when they are first asked for.
 *
 * @param basePath - what precedes `/v2` in every path
 */
export const make = Effect.fnUntraced(function* (basePath: string) {
  const document = yield* Effect.cached(Effect.promise(() => printDocument(basePath)))
  const page = yield* Effect.cached(Effect.promise(() => printPage(basePath)))

  return {
    "docs.document": () => document,
    "docs.page": () => page,
  } satisfies OperationsOn<"docs">
})
