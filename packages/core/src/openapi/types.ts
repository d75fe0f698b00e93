/** The OpenAPI 3.1 parts used in the API document. */

/** A JSON Schema. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** A reference to a component in the document. */
export interface JsonReference {
  readonly $ref: string
}

export interface MediaType {
  readonly schema: JsonSchema
  readonly example?: unknown
  readonly examples?: Readonly<
    Record<string, { readonly summary: string; readonly value: unknown }>
  >
}

export type OpenApiContent = Readonly<Record<string, MediaType>>

export interface OpenApiHeader {
  readonly description: string
  readonly required: boolean
  readonly schema: JsonSchema
}

export interface OpenApiParameter {
  readonly name: string
  readonly in: string
  readonly description: string
  readonly required: boolean
  readonly schema: JsonSchema
  readonly example?: unknown
}

interface RequestBody {
  readonly required: boolean
  readonly content: OpenApiContent
}

export interface OpenApiResponse {
  readonly description: string
  readonly headers?: Readonly<Record<string, JsonReference>>
  readonly content?: OpenApiContent
}

export interface OpenApiOperation {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly tags: ReadonlyArray<string>
  readonly security: ReadonlyArray<Readonly<Record<string, ReadonlyArray<string>>>>
  readonly parameters: ReadonlyArray<OpenApiParameter>
  readonly requestBody?: RequestBody
  readonly responses: Readonly<Record<string, OpenApiResponse | JsonReference>>
}

/** A path's operations, by lower-case method. */
export type PathItem = Readonly<Record<string, OpenApiOperation>>

export interface OpenApiDocument {
  readonly openapi: "3.1.0"
  readonly info: {
    readonly title: string
    readonly version: string
    readonly description: string
    readonly license: { readonly name: string; readonly identifier: string }
    readonly contact: { readonly name: string; readonly url: string }
  }
  readonly servers: ReadonlyArray<{ readonly url: string; readonly description: string }>
  readonly tags: ReadonlyArray<{ readonly name: string; readonly description: string }>
  readonly paths: Readonly<Record<string, PathItem>>
  readonly webhooks: Readonly<Record<string, PathItem>>
  readonly components: {
    readonly headers: Readonly<Record<string, OpenApiHeader>>
    readonly responses: Readonly<Record<string, OpenApiResponse>>
    readonly schemas: Readonly<Record<string, JsonSchema>>
    readonly securitySchemes: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  }
}
