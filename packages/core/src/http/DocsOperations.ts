/** The operations that show how the API is called. */

import * as Effect from "effect/Effect"
import type { Document } from "./docs/OpenApi.ts"
import type { Verbatim } from "./Envelope.ts"
import type { OperationsOn } from "./Operation.ts"
import * as RequestId from "./RequestId.ts"

const verbatim = (body: string, headers: Verbatim["headers"]): Verbatim => ({
  _tag: "Verbatim",
  headers: { ...headers, "X-Content-Type-Options": "nosniff" },
  body,
})

/** What the document depends on. */
interface Rules {
  /** What precedes `/v2` in every path. */
  readonly basePath: string
  /** The header field with the id of a request, if requests come with ids. */
  readonly requestIdHeader: string | undefined
}

const schemasOf = ({ components: { schemas } }: Document, { requestIdHeader }: Rules) =>
  requestIdHeader === undefined
    ? schemas
    : {
        ...schemas,
        RequestId: {
          type: "string",
          maxLength: RequestId.maxLength,
          description: `The id of the request, from the header \`${requestIdHeader}\` or a new UUID.`,
        },
      }

/** Loads the document. Programs that never show it do not load it. */
const load = async (rules: Rules): Promise<Document> => {
  const { document } = await import("./docs/document.ts")
  const { basePath } = rules
  return {
    ...document,
    servers: document.servers.map((server) => ({ ...server, url: basePath || server.url })),
    components: { ...document.components, schemas: schemasOf(document, rules) },
  }
}

const printPage = async (rules: Rules): Promise<Verbatim> => {
  const [{ contentSecurityPolicy, print }, document] = await Promise.all([
    import("./docs/Html.ts"),
    load(rules),
  ])
  return verbatim(print(document), {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": contentSecurityPolicy,
    "Referrer-Policy": "no-referrer",
  })
}

const printDocument = async (rules: Rules): Promise<Verbatim> =>
  verbatim(JSON.stringify(await load(rules)), { "Content-Type": "application/json" })

const printAsyncDocument = async (rules: Rules): Promise<Verbatim> => {
  const [{ print }, document] = await Promise.all([import("./docs/AsyncApi.ts"), load(rules)])
  return verbatim(print(document, rules.basePath), { "Content-Type": "application/json" })
}

/** Makes the operations. The documents and the page are made once, each when it is first asked for. */
export const make = Effect.fnUntraced(function* (rules: Rules) {
  const document = yield* Effect.cached(Effect.promise(() => printDocument(rules)))
  const asyncDocument = yield* Effect.cached(Effect.promise(() => printAsyncDocument(rules)))
  const page = yield* Effect.cached(Effect.promise(() => printPage(rules)))

  return {
    "docs.document": () => document,
    "docs.asyncDocument": () => asyncDocument,
    "docs.page": () => page,
  } satisfies OperationsOn<"docs">
})
