/** Operations for the API's documentation: they reply without an envelope. */

import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { routes } from "../http/routes.ts"
import { withoutKey } from "./schemas.ts"

const { "docs.asyncDocument": asyncDocument, "docs.document": document, "docs.page": page } = routes

/** Operations for the API's documentation. */
export class DocsGroup extends HttpApiGroup.make("docs")
  .add(
    HttpApiEndpoint.make(document.method)("document", document.pattern, {
      success: Schema.Record(Schema.String, Schema.Unknown).annotate({
        description: "An OpenAPI 3.1 document.",
      }),
      error: withoutKey,
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Get the OpenAPI document",
        description: "Returns this document, without an envelope.",
      }),
    ),
    HttpApiEndpoint.make(asyncDocument.method)("asyncDocument", asyncDocument.pattern, {
      success: Schema.Record(Schema.String, Schema.Unknown).annotate({
        description: "An AsyncAPI 3 document.",
      }),
      error: withoutKey,
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Get the AsyncAPI document",
        description: "Returns what the feed and webhooks send, without an envelope.",
      }),
    ),
    HttpApiEndpoint.make(page.method)("page", page.pattern, {
      success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/html" })),
      error: withoutKey,
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Read the documentation",
        description: "Returns this document as a page to read.",
      }),
    ),
  )
  .annotate(OpenApi.Title, "Documentation")
  .annotate(OpenApi.Description, "How the API is called.") {}
