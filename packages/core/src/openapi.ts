/** The API's documents: OpenAPI and AsyncAPI. */

export { printAsyncApi } from "./openapi/asyncapi.ts"
export { Api, Authorization, openApi } from "./openapi/document.ts"
export type { OpenApiDocument } from "./openapi/types.ts"
