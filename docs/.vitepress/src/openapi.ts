/** Prints the OpenAPI document as a page. */

import type {
  JsonReference,
  OpenApiContent,
  OpenApiDocument,
  OpenApiOperation,
  OpenApiParameter,
  OpenApiResponse,
} from "../../../packages/core/src/openapi/types.ts"
import { paragraphs, prose, sample, table } from "./markdown.ts"
import { isSchema, printer, referenceOf } from "./schema.ts"

/** An error, as in a response example. */
interface Failure {
  readonly name: string
  readonly status: string
  readonly when: string
}

const failuresOf = (status: string, { content = {} }: OpenApiResponse): ReadonlyArray<Failure> =>
  Object.values(content).flatMap(({ examples = {} }) =>
    Object.entries(examples).map(([name, { summary }]) => ({ name, status, when: summary })),
  )

/** Statuses with errors specific to an operation. */
const ofItsOwn = new Set(["404", "409", "410", "422"])

/** Tells whether all operations with an idempotency key may return an error. */
const isOfKeys = (name: string): boolean => name.startsWith("Idempotency")

const isReference = (value: object): value is JsonReference => "$ref" in value

const hasData = (value: unknown): value is { readonly data: unknown } =>
  typeof value === "object" && value !== null && "data" in value && value.data !== null

const operationsOf = (paths: OpenApiDocument["paths"]) =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )

const pageOf = (document: OpenApiDocument) => {
  const { components, paths, webhooks } = document
  const { fieldsOf, objects, typeOf } = printer(components.schemas)

  const parametersOf = (all: ReadonlyArray<OpenApiParameter>): string =>
    table(
      ["parameter", "in", "type", "meaning"],
      all.map(({ description, in: place, name, required, schema }) => [
        `\`${name}\`${required ? "" : " (optional)"}`,
        place,
        typeOf(schema),
        prose(description),
      ]),
    )

  const bodyOf = (content: OpenApiContent): string =>
    Object.entries(content)
      .map(([type, { example, schema }]) =>
        paragraphs(
          `Body, \`${type}\`:`,
          fieldsOf(schema),
          example === undefined ? "" : sample(example),
        ),
      )
      .join("\n\n")

  /** Returns a result's type without its envelope. */
  const resultOf = (content: OpenApiContent): string =>
    Object.values(content)
      .map(({ example, schema }) => {
        const { properties } = schema
        const data = isSchema(properties) ? properties["data"] : undefined
        if (!isSchema(data)) return ""
        return paragraphs(
          `Response, in \`data\`: ${typeOf(data)}`,
          hasData(example) ? sample(example.data) : "",
        )
      })
      .join("\n\n")

  const errorsOf = ({ responses }: OpenApiOperation): string => {
    const names = Object.entries(responses).flatMap(([status, response]) => {
      const found = isReference(response)
        ? components.responses[referenceOf(response) ?? ""]
        : undefined
      return found === undefined || !ofItsOwn.has(status)
        ? []
        : failuresOf(status, found).flatMap(({ name }) =>
            isOfKeys(name) ? [] : [`[${name}](#${name})`],
          )
    })
    return names.length === 0 ? "" : `Errors: ${[...new Set(names)].join(", ")}`
  }

  const operation = ({ method, operation: of, path }: ReturnType<typeof operationsOf>[number]) => {
    const success = of.responses["200"]
    return paragraphs(
      `### ${of.summary} {#${of.operationId}}`,
      `\`${method.toUpperCase()} ${path}\``,
      prose(of.description),
      parametersOf(of.parameters),
      of.requestBody === undefined ? "" : bodyOf(of.requestBody.content),
      success === undefined || isReference(success) ? "" : resultOf(success.content ?? {}),
      errorsOf(of),
    )
  }

  const notification = (type: string, { operationId, requestBody, summary }: OpenApiOperation) =>
    paragraphs(
      `### \`${type}\` {#${operationId}}`,
      prose(summary),
      bodyOf(requestBody?.content ?? {}),
    )

  const failures = new Map(
    operationsOf(paths)
      .flatMap(({ operation: { responses } }) => Object.entries(responses))
      .flatMap(([status, response]) => {
        const found = isReference(response)
          ? components.responses[referenceOf(response) ?? ""]
          : response
        return found === undefined ? [] : failuresOf(status, found)
      })
      .map((failure) => [failure.name, failure] as const),
  )

  return {
    section: (tag: string): string =>
      [
        ...operationsOf(paths)
          .filter((found) => found.operation.tags.includes(tag))
          .map(operation),
        ...Object.entries(webhooks).flatMap(([type, { post }]) =>
          post?.tags.includes(tag) === true ? [notification(type, post)] : [],
        ),
      ].join("\n\n"),
    errors: (): string =>
      [...failures.values()]
        .toSorted((a, b) => Number(a.status) - Number(b.status))
        .map(({ name, status, when }) => `### ${name} {#${name}}\n\n${status}. ${prose(when)}`)
        .join("\n\n"),
    objects: () => objects((name) => failures.has(name)),
  }
}

/** Prints the page. @param file - the document's path on the site */
export const print = (document: OpenApiDocument, file: string): string => {
  const page = pageOf(document)
  return paragraphs(
    "# Endpoints",
    `${prose(document.info.description)} This page shows the [OpenAPI document](${file}){target="_self"}; a server has both at \`/v2/docs\`. [The HTTP API](../http-api.md) is the page to begin with.`,
    ...document.tags.map(({ description, name }) =>
      paragraphs(`## ${name}`, prose(description), page.section(name)),
    ),
    "## Errors",
    `Operations name those with the statuses ${[...ofItsOwn].join(", ")}. Any operation can fail with the others, and any that takes \`Idempotency-Key\` with those that are named after it.`,
    page.errors(),
    "## Objects",
    page.objects(),
  )
}
