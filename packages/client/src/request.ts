/** Turns the input of an operation into a request. */

/** The methods of the API. */
export type Method = "DELETE" | "GET" | "PATCH" | "POST" | "PUT"

/** A path as the document writes it, with parameters in braces. */
export type Template = `/v2/${string}`

/** A request, without what all requests of a client have. */
export interface Outgoing {
  readonly method: Method
  /** The path with the query. */
  readonly target: string
  readonly body: string | undefined
  readonly contentType: string
}

/** The input of an operation whose body is lines of JSON. */
export interface WithLines {
  readonly lines: Iterable<object>
}

/** One segment of a path. URLs resolve `.` and `..` even percent-encoded. */
const segment = (name: string, value: unknown): string => {
  const text = String(value)
  if (value === undefined || text === "" || text === "." || text === "..") {
    throw new TypeError(`${name} must be a text, and neither empty nor "." nor ".."`)
  }
  return encodeURIComponent(text)
}

const parameter = /\{(\w+)\}/g

const queryOf = (fields: ReadonlyArray<readonly [string, unknown]>): string => {
  const texts = fields.map(([name, value]): [string, string] => [name, String(value)])
  return texts.length === 0 ? "" : `?${new URLSearchParams(texts)}`
}

/** Fills in the parameters of a path. Returns also the fields that are left. */
const fill = (template: Template, input: object) => {
  const rest = new Map<string, unknown>(Object.entries(input))
  const path = template.replaceAll(parameter, (_, name: string) => {
    const value = rest.get(name)
    rest.delete(name)
    return segment(name, value)
  })
  return { path, fields: [...rest].filter(([, value]) => value !== undefined) }
}

/**
 * Makes a request. The fields of the input that are not in the path are the query or the body.
 *
 * @throws TypeError if a path parameter is missing, or the path would be another with it
 */
export const make = (method: Method, template: Template, input: object): Outgoing => {
  const { fields, path } = fill(template, input)
  const contentType = "application/json"
  if (method === "GET" || method === "DELETE") {
    return { method, target: `${path}${queryOf(fields)}`, body: undefined, contentType }
  }
  const body = fields.length === 0 ? undefined : JSON.stringify(Object.fromEntries(fields))
  return { method, target: path, body, contentType }
}

/** Makes a request whose body is lines of JSON. Throws as `make` does. */
export const makeWithLines = (
  method: Method,
  template: Template,
  { lines, ...input }: WithLines,
): Outgoing => ({
  method,
  target: fill(template, input).path,
  body: Array.from(lines, (line) => `${JSON.stringify(line)}\n`).join(""),
  contentType: "application/x-ndjson",
})
