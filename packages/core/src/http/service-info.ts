/** The operations that tell how Tenure is doing. */

import * as Effect from "effect/Effect"
import { Activity, type ActivityReport } from "../health/activity.ts"
import { Status, type StatusReport } from "../health/status.ts"
import type { OpenApiDocument } from "../openapi/types.ts"
import { type OperationsOn, isoOrNull, readQuery, requireAllProjects } from "./operation.ts"
import { maxRequestIdLength } from "./request.ts"
import type { RawReply } from "./response.ts"

const dataOf = ({ backlog, stores, suspendedKeys, version }: StatusReport) => ({
  versions: { tenure: version, api: "v2" },
  stores: {
    memberships: stores.memberships,
    webhooks: stores.webhooks,
    api_keys: stores.apiKeys,
    deliveries: stores.deliveries,
    rate_limits: stores.rateLimits,
  },
  backlog:
    backlog === undefined
      ? null
      : { waiting: backlog.waiting, due_for_ms: backlog.dueForMillis ?? null },
  failed_deliveries: backlog?.failedDeliveries ?? null,
  disabled_webhooks: backlog?.disabledWebhooks ?? null,
  suspended_keys: suspendedKeys,
})

const activityOf = ({ minutes, refusals }: ActivityReport) => ({
  minutes: minutes.map(({ at, ...counts }) => ({ at: isoOrNull(at), ...counts })),
  refusals: refusals.map(({ keyId, refused }) => ({ key_id: keyId ?? null, refused })),
})

/** Makes the operations. */
export const makeStatusOperations = Effect.gen(function* () {
  const { report } = yield* Status
  const activity = yield* Activity

  return {
    "status.get": Effect.fnUntraced(function* (call) {
      yield* requireAllProjects(call)
      yield* readQuery(call.request, {})
      return { message: "The status of this server.", data: dataOf(yield* report) }
    }),

    "status.activity": Effect.fnUntraced(function* (call) {
      yield* requireAllProjects(call)
      yield* readQuery(call.request, {})
      return {
        message: "What this server has done in the last hour.",
        data: activityOf(yield* activity.report),
      }
    }),
  } satisfies OperationsOn<"status">
})

/** The operations that show how the API is called. */

const verbatim = (body: string, headers: RawReply["headers"]): RawReply => ({
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

/** Loads the document. Programs that never show it do not load it. */
const load = async (rules: Rules): Promise<OpenApiDocument> => {
  const { document } = await import("./docs/document.ts")
  const { basePath } = rules
  return {
    ...document,
    servers: document.servers.map((server) => ({ ...server, url: basePath || server.url })),
    components: { ...document.components, schemas: schemasOf(document, rules) },
  }
}

const printPage = async (rules: Rules): Promise<RawReply> => {
  const [{ contentSecurityPolicy, printHtml: print }, document] = await Promise.all([
    import("../openapi/html.ts"),
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
    import("../openapi/asyncapi.ts"),
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
