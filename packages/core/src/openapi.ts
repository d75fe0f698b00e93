/** The documents of the API: OpenAPI and AsyncAPI. */

export { printAsyncApi } from "./openapi/asyncapi.ts"
export { Api, Authorization, openApi } from "./openapi/document.ts"
export type {
  JsonReference,
  JsonSchema,
  OpenApiContent,
  OpenApiDocument,
  OpenApiOperation,
  OpenApiParameter,
  OpenApiResponse,
} from "./openapi/types.ts"
