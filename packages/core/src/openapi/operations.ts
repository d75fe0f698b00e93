/** Operations for the API's documentation. Programs that never serve it load no document. */

import * as Effect from "effect/Effect"
import type { OperationsOn } from "../http/operation.ts"
import { maxRequestIdLength } from "../http/request.ts"
import type { RawReply } from "../http/response.ts"
import type { OpenApiDocument } from "./types.ts"

const verbatim = (body: string, headers: RawReply["headers"]): RawReply => ({
  _tag: "Verbatim",
  headers: { ...headers, "X-Content-Type-Options": "nosniff" },
  body,
})

/** The settings behind the document. */
interface Rules {
  /** The prefix before `/v2` in every path. */
  readonly basePath: string
  /** The request id's header field, if requests have ids. */
  readonly requestIdHeader: string | undefined
}

const schemasOf = ({ components: { schemas } }: OpenApiDocument, { requestIdHeader }: Rules) =>
  requestIdHeader === undefined
    ? schemas
    : {
        ...schemas,
        RequestId: {
          type: "string",
          maxLength: maxRequestIdLength,
          description: `The id of the request, from the header \`${requestIdHeader}\` or a new UUID.`,
        },
      }

/** Loads the document. */
const load = async (rules: Rules): Promise<OpenApiDocument> => {
  const { document } = await import("./document.generated.ts")
  const { basePath } = rules
  return {
    ...document,
    servers: document.servers.map((server) => ({ ...server, url: basePath || server.url })),
    components: { ...document.components, schemas: schemasOf(document, rules) },
  }
}

const printPage = async (rules: Rules): Promise<RawReply> => {
  const [{ contentSecurityPolicy, printHtml: print }, document] = await Promise.all([
    import("./html.ts"),
    load(rules),
  ])
  return verbatim(print(document), {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": contentSecurityPolicy,
    "Referrer-Policy": "no-referrer",
  })
}

const printDocument = async (rules: Rules): Promise<RawReply> =>
  verbatim(JSON.stringify(await load(rules)), { "Content-Type": "application/json" })

const printAsyncDocument = async (rules: Rules): Promise<RawReply> => {
  const [{ printAsyncApi: print }, document] = await Promise.all([
    import("./asyncapi.ts"),
    load(rules),
  ])
  return verbatim(print(document, rules.basePath), { "Content-Type": "application/json" })
}

/** Makes the operations. The documents and the page are made once, each when it is first asked for. */
export const makeDocsOperations = Effect.fnUntraced(function* (rules: Rules) {
  const document = yield* Effect.cached(Effect.promise(() => printDocument(rules)))
  const asyncDocument = yield* Effect.cached(Effect.promise(() => printAsyncDocument(rules)))
  const page = yield* Effect.cached(Effect.promise(() => printPage(rules)))

  return {
    "docs.document": () => document,
    "docs.asyncDocument": () => asyncDocument,
    "docs.page": () => page,
  } satisfies OperationsOn<"docs">
})
