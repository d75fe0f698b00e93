/** Prints the OpenAPI document as a page to read: static HTML, without scripts. */

import * as Predicate from "effect/Predicate"
import { encodeBase64, sha256 } from "../base/bytes.ts"
import type {
  JsonReference,
  JsonSchema,
  MediaType,
  OpenApiDocument,
  OpenApiOperation,
  OpenApiParameter,
  OpenApiResponse,
} from "./types.ts"

const style = `
:root{color-scheme:light dark;--ink:light-dark(#1d2129,#e4e6ea);--dim:light-dark(#5b6472,#9aa4b2);--line:light-dark(#dfe3e8,#333a45);--code:light-dark(#f5f6f8,#1b2028);--link:light-dark(#0b5cad,#7cb8ff)}
*{box-sizing:border-box}
body{margin:0 auto;max-width:82rem;padding:1rem;color:var(--ink);background:light-dark(#fff,#12161c);font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
a{color:var(--link);text-decoration:none}a:hover{text-decoration:underline}
h1{margin:0;font-size:1.75rem}h2{margin:2.5rem 0 .5rem;font-size:1.35rem}h3{margin:0;font-size:1.05rem}
code,dt,pre{font:.875em/1.5 ui-monospace,Menlo,Consolas,monospace}
pre{margin:.25rem 0 .75rem;padding:.6rem .75rem;border-radius:.4rem;background:var(--code);white-space:pre-wrap}
section>section{padding:1rem 0;border-top:1px solid var(--line)}
p{margin:.25rem 0 .75rem;max-width:46rem}small{color:var(--dim)}
dl{margin:.25rem 0 .75rem;display:grid;grid-template-columns:fit-content(40%) 1fr;gap:.15rem 1rem}dd{margin:0}.o::after{content:" optional";color:var(--dim)}
h4{margin:.75rem 0 .25rem}nav{margin-bottom:2rem;columns:9rem 2;font-size:.9rem}nav ul{margin:0;padding:0;list-style:none}nav div{padding-bottom:.75rem;break-inside:avoid}nav div>a{font-weight:600}
h3+p>b{display:inline-block;min-width:4.5rem;font-weight:600;color:light-dark(#0a6640,#6fd6a4)}
.post,.put{color:light-dark(#0b5cad,#7cb8ff)}.patch{color:light-dark(#8a4b00,#f0b35e)}.delete{color:light-dark(#b3261e,#ff9b93)}
@media(min-width:60rem){body{display:grid;grid-template-columns:15rem minmax(0,1fr);gap:0 3rem;padding:2rem}nav{position:sticky;top:2rem;align-self:start;max-height:calc(100vh - 4rem);columns:1;overflow:auto}section>div{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:2rem}}
`

const digest = encodeBase64(sha256(new TextEncoder().encode(style)))

/** The page's policy: nothing but its own style. */
export const contentSecurityPolicy = `default-src 'none'; style-src 'sha256-${digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" }

/** Escapes text between tags. Attributes have only names from the document. */
const escape = (text: string): string => text.replaceAll(/[&<>]/g, (one) => entities[one] ?? "")

/** Prints a sentence, with text in backticks as code. */
const prose = (text: string): string => escape(text).replaceAll(/`([^`]*)`/g, "<code>$1</code>")

const code = (text: string): string => `<code>${escape(text)}</code>`

/** Names a field or a parameter. The style marks it as optional. */
const term = (name: string, isRequired: boolean, target = ""): string =>
  `<dt${target}${isRequired ? "" : " class=o"}>${escape(name)}`

const pre = (value: unknown): string =>
  `<pre>${escape(typeof value === "string" ? value : JSON.stringify(value, null, 1))}</pre>`

const json = "application/json"

const nameOf = ({ $ref }: { readonly $ref: string }): string =>
  $ref.slice($ref.lastIndexOf("/") + 1)

const isReference = (value: object): value is JsonReference =>
  "$ref" in value && typeof value.$ref === "string"

const isSchema = (value: unknown): value is JsonSchema => Predicate.isObject(value)

const link = (name: string): string => `<a href=#${name}>${name}</a>`

/** A group's name in a URL: `api-keys` for `API keys`. */
const slug = (name: string): string => name.toLowerCase().replaceAll(" ", "-")

/** Schemas with their own fields, and so a place on the page. */
const hasFields = (schema: JsonSchema | undefined): boolean => isSchema(schema?.["properties"])

const operationsOf = (paths: OpenApiDocument["paths"]): ReadonlyArray<OpenApiOperation> =>
  Object.values(paths).flatMap((methods) => Object.values(methods))

const heading = ({ summary }: OpenApiOperation, method: string, path: string): string =>
  `<h3>${escape(summary)}</h3><p><b class=${method}>${method.toUpperCase()}</b> ${code(path)}`

const event = (type: string, given: OpenApiOperation): string =>
  `<section id=${given.operationId}><h3>${escape(type)}</h3><p>${prose(given.summary)}${Object.values(
    given.requestBody?.content ?? {},
  )
    .map(({ example }) => pre(example))
    .join("")}</section>`

/** An error shown by a response example. */
interface Failure {
  readonly name: string
  readonly status: number
  readonly code: string
  readonly when: string
}

const codePattern = /"(?:error_)?code":"(\w+)"/

const failuresOf = ({ content = {} }: OpenApiResponse): ReadonlyArray<Failure> =>
  Object.values(content).flatMap(({ examples = {} }) =>
    Object.entries(examples).map(([name, { summary, value }]) => ({
      name,
      status: Predicate.hasProperty(value, "code") ? Number(value.code) : 0,
      code: codePattern.exec(JSON.stringify(value))?.[1] ?? "",
      when: summary,
    })),
  )

/** Statuses with different errors for each operation. */
const ofItsOwn = new Set(["404", "409", "410", "422"])

/** The errors common to most operations; they are not listed again. */
const ofMost = ["ProjectNotFound", "InvalidInput"]

/** Whether an error belongs to all operations with an idempotency key. */
const isOfKeys = ({ name }: Failure): boolean => name.startsWith("Idempotency")

/** The parameters shared by several operations, by kind. */
const sharedParameters = (
  operations: ReadonlyArray<OpenApiOperation>,
): ReadonlyMap<string, OpenApiParameter> => {
  const all = operations.flatMap(({ parameters }) =>
    parameters.map((one) => [JSON.stringify(one), one] as const),
  )
  const seen = new Set<string>()
  return new Map(
    all.filter(([text]) => {
      const isRepeated = seen.has(text)
      seen.add(text)
      return isRepeated
    }),
  )
}

/** Body schemas: the page shows them in place. */
const namesOfBodies = ({ paths, webhooks }: OpenApiDocument): ReadonlySet<string> =>
  new Set(
    [...operationsOf(paths), ...operationsOf(webhooks)]
      .flatMap(({ requestBody }) => Object.values(requestBody?.content ?? {}))
      .flatMap(({ schema }) => (isReference(schema) ? [nameOf(schema)] : [])),
  )

/** Prints the parts that need the rest of the document. */
const printer = (document: OpenApiDocument) => {
  const { components, paths, webhooks } = document
  const { responses, schemas } = components
  const failures = new Map(
    Object.values(responses)
      .flatMap(failuresOf)
      .map((failure) => [failure.name, failure]),
  )

  /** Names a type in a few words. */
  const typeOf = (schema: JsonSchema): string => {
    if (isReference(schema)) {
      const name = nameOf(schema)
      const target = schemas[name]
      return target === undefined || hasFields(target) ? link(name) : typeOf(target)
    }
    const alternatives: ReadonlyArray<unknown> = Array.isArray(schema["anyOf"])
      ? schema["anyOf"]
      : []
    if (alternatives.length > 0) return alternatives.filter(isSchema).map(typeOf).join(" or ")
    const values: ReadonlyArray<unknown> = Array.isArray(schema["enum"]) ? schema["enum"] : []
    if (values.length > 0) return code(values.map((value) => JSON.stringify(value)).join(" | "))
    if (schema["type"] === "array") {
      return `array of ${isSchema(schema["items"]) ? typeOf(schema["items"]) : "anything"}`
    }
    const { format, type = "any" } = schema
    return escape(String(format ?? type))
  }

  const descriptionOf = (schema: JsonSchema): string => {
    const { description } = schema
    if (typeof description === "string") return prose(description)
    return isReference(schema) ? descriptionOf(schemas[nameOf(schema)] ?? {}) : ""
  }

  const field = (name: string, schema: JsonSchema, required: boolean): string =>
    `${term(name, required)}<dd><small>${typeOf(schema)}</small> ${descriptionOf(schema)}`

  const fieldsOf = ({ properties, required }: JsonSchema): string => {
    const needed: ReadonlyArray<unknown> = Array.isArray(required) ? required : []
    const fields = Object.entries(isSchema(properties) ? properties : {}).map(([name, schema]) =>
      isSchema(schema) ? field(name, schema, needed.includes(name)) : "",
    )
    return fields.length === 0 ? "" : `<dl>${fields.join("")}</dl>`
  }

  const parameter = (
    { description, in: place, name, required, schema }: OpenApiParameter,
    target = "",
  ): string =>
    `${term(name, required, target)}<dd><small>${place}, ${typeOf(schema)}</small> ${prose(description)}`

  const parameterList = (all: ReadonlyArray<OpenApiParameter>): string =>
    all.length === 0 ? "" : `<dl>${all.map((one) => parameter(one)).join("")}</dl>`

  const shared = sharedParameters(operationsOf(paths))

  /** Describes the operation's own parameters, and links to shared ones, except for path parameters. */
  const parameters = (all: ReadonlyArray<OpenApiParameter>): string => {
    const own = all.filter((one) => !shared.has(JSON.stringify(one)))
    const links = all
      .filter((one) => !own.includes(one) && one.in !== "path")
      .map(({ name }) => link(name))
    return own.length + links.length === 0
      ? ""
      : `<h4>Parameters</h4>${links.length === 0 ? "" : `<p>${links.join(", ")}`}${parameterList(own)}`
  }

  const body = (title: string, content: Readonly<Record<string, MediaType>>): string =>
    Object.entries(content)
      .map(([type, { example, schema }]) => {
        const resolved = isReference(schema) ? (schemas[nameOf(schema)] ?? {}) : schema
        return `<h4>${title}${type === json ? "" : ` <small>${escape(type)}</small>`}</h4>${fieldsOf(resolved)}${example === undefined ? "" : pre(example)}`
      })
      .join("")

  /** A result's type, without its envelope. */
  const result = (content: Readonly<Record<string, MediaType>>): string =>
    Object.entries(content)
      .map(([type, { example, schema }]) => {
        const { properties } = schema
        const data = isSchema(properties) ? properties["data"] : undefined
        const shown =
          Predicate.hasProperty(example, "data") && example.data !== null ? pre(example.data) : ""
        return isSchema(data)
          ? `<h4>Data <small>${typeOf(data)}</small></h4>${shown}`
          : `<h4>Response <small>${escape(type)}</small></h4>`
      })
      .join("")

  const errors = (operation: OpenApiOperation): string => {
    const own = Object.entries(operation.responses).flatMap(([status, response]) =>
      isReference(response) && ofItsOwn.has(status)
        ? failuresOf(responses[nameOf(response)] ?? { description: "" }).filter(
            (failure) => !isOfKeys(failure) && !ofMost.includes(failure.name),
          )
        : [],
    )
    return own.length === 0
      ? ""
      : `<h4>Errors</h4><p>${own.map(({ name }) => link(name)).join(", ")}`
  }

  const operation = (path: string, method: string, given: OpenApiOperation): string => {
    const success = given.responses["200"]
    const answer =
      success !== undefined && !isReference(success) ? result(success.content ?? {}) : ""
    return `<section id=${given.operationId}>${heading(given, method, path)}<p>${prose(given.description)}<div><div>${parameters(given.parameters)}${errors(given)}</div><div>${given.requestBody === undefined ? "" : body("Body", given.requestBody.content)}${answer}</div></div></section>`
  }

  return {
    operations: (tag: string): string =>
      Object.entries(paths)
        .flatMap(([path, methods]) =>
          Object.entries(methods).map(([method, given]) =>
            given.tags.includes(tag) ? operation(path, method, given) : "",
          ),
        )
        .join(""),
    notifications: (tag: string): string => {
      const posts = Object.entries(webhooks).flatMap(([type, { post }]) =>
        post?.tags.includes(tag) === true ? [[type, post] as const] : [],
      )
      const [first] = posts
      return `${first === undefined ? "" : parameterList(first[1].parameters)}${posts.map(([type, post]) => event(type, post)).join("")}`
    },
    parameters: (): string =>
      `<dl>${Array.from(shared.values(), (one) => parameter(one, ` id=${one.name}`)).join("")}</dl>`,
    errors: (): string =>
      [...failures.values()]
        .toSorted((a, b) => a.status - b.status)
        .map(
          ({ code: errorCode, name, status, when }) =>
            `<dt id=${name}>${name}<dd><small>${status} ${code(errorCode)}</small> ${prose(when)}`,
        )
        .join(""),
    objects: (): string => {
      const bodies = namesOfBodies(document)
      return Object.entries(schemas)
        .filter(([name, schema]) => hasFields(schema) && !bodies.has(name) && !failures.has(name))
        .map(
          ([name, schema]) => `<section id=${name}><h3>${name}</h3>${fieldsOf(schema)}</section>`,
        )
        .join("")
    },
  }
}

const linksOf = (links: ReadonlyArray<readonly [id: string, text: string]>): string =>
  `<ul>${links.map(([id, text]) => `<li><a href=#${id}>${escape(text)}</a>`).join("")}</ul>`

const index = ({ paths, tags, webhooks }: OpenApiDocument): string =>
  tags
    .map(({ name }) => {
      const operations = operationsOf(paths).map(
        (operation) => [operation, operation.summary] as const,
      )
      const notifications = Object.entries(webhooks).flatMap(([type, methods]) =>
        Object.values(methods).map((operation) => [operation, type] as const),
      )
      const links = [...operations, ...notifications]
        .filter(([operation]) => operation.tags.includes(name))
        .map(([{ operationId }, text]) => [operationId, text] as const)
      return `<div><a href=#${slug(name)}>${escape(name)}</a>${linksOf(links)}</div>`
    })
    .join("")

/** Prints the page. */
export const printHtml = (document: OpenApiDocument): string => {
  const { info, servers, tags } = document
  const printed = printer(document)
  const base = servers.map(({ url }) => url).join()
  const sections = tags.map(
    ({ description, name }) =>
      `<section id=${slug(name)}><h2>${escape(name)}</h2><p>${prose(description)}${printed.operations(name)}${printed.notifications(name)}</section>`,
  )
  return `<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width,initial-scale=1"><title>${escape(info.title)}</title><style>${style}</style>
<nav>${index(document)}<div><a href=#parameters>Parameters</a></div><div><a href=#errors>Errors</a></div><div><a href=#objects>Objects</a></div></nav>
<main><h1>${escape(info.title)}</h1><p>${prose(info.description)}<p>Version ${escape(info.version)}, at ${code(base)}. <a href=openapi.json>OpenAPI</a> and <a href=asyncapi.json>AsyncAPI</a> documents
${sections.join("\n")}
<section id=parameters><h2>Parameters</h2><p>Those that several operations have, in their paths or by a link.${printed.parameters()}</section>
<section id=errors><h2>Errors</h2><p>Operations name those with the statuses ${[...ofItsOwn].join(", ")}, but for ${ofMost.map(link).join(" and ")}, which most of them have. Any operation can fail with the others, and any that takes ${link("Idempotency-Key")} with those that are named after it.<dl>${printed.errors()}</dl></section>
<section id=objects><h2>Objects</h2>${printed.objects()}</section></main></html>
`
}
