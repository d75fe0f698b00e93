/** The parts of OpenAPI 3.1 that the document of the API has. */

/** A JSON Schema. */
export type Schema = Readonly<Record<string, unknown>>

/** A reference to a component of the document. */
export interface Reference {
  readonly $ref: string
}

export interface MediaType {
  readonly schema: Schema
  readonly example?: unknown
  readonly examples?: Readonly<
    Record<string, { readonly summary: string; readonly value: unknown }>
  >
}

export type Content = Readonly<Record<string, MediaType>>

export interface Header {
  readonly description: string
  readonly required: boolean
  readonly schema: Schema
}

export interface Parameter {
  readonly name: string
  readonly in: string
  readonly description: string
  readonly required: boolean
  readonly schema: Schema
  readonly example?: unknown
}

interface RequestBody {
  readonly required: boolean
  readonly content: Content
}

export interface Response {
  readonly description: string
  readonly headers?: Readonly<Record<string, Reference>>
  readonly content?: Content
}

export interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly tags: ReadonlyArray<string>
  readonly security: ReadonlyArray<Readonly<Record<string, ReadonlyArray<string>>>>
  readonly parameters: ReadonlyArray<Parameter>
  readonly requestBody?: RequestBody
  readonly responses: Readonly<Record<string, Response | Reference>>
}

/** The operations of a path, by method in lower case. */
export type PathItem = Readonly<Record<string, Operation>>

export interface Document {
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
    readonly headers: Readonly<Record<string, Header>>
    readonly responses: Readonly<Record<string, Response>>
    readonly schemas: Readonly<Record<string, Schema>>
    readonly securitySchemes: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  }
}
