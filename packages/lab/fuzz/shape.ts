/** Answers' shapes: what must be the same in every host. */

import type { Answer } from "./answers.ts"

/** What an answer looks like. */
export interface Shape {
  readonly status: number
  /** The body's keys and types, and the values that must be equal. `undefined` without an envelope. */
  readonly envelope: string | undefined
  /** The error code, if the answer has one. */
  readonly code: string | undefined
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const parse = (body: string): unknown => {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

// Their values do not depend on the host.
const compared = new Set(["ok", "method", "path", "code", "error_code"])

// Hosts refuse some requests that others pass on. So the members' dates differ, and one may be null.
const dates = new Set(["end_date", "through", "kept_day", "paused_at", "resumes_at"])

const describe = (value: unknown, key = ""): string => {
  if (compared.has(key)) return JSON.stringify(value)
  if (dates.has(key)) return "date"
  if (Array.isArray(value)) {
    return `[${[...new Set(value.map((item) => describe(item)))].join(" | ")}]`
  }
  if (!isRecord(value)) return value === null ? "null" : typeof value
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{ ${entries.map(([name, item]) => `${name}: ${describe(item, name)}`).join(", ")} }`
}

const codeOf = (body: Readonly<Record<string, unknown>>): string | undefined => {
  const errors = body["errors"]
  const error = Array.isArray(errors) ? errors[0] : body["error"]
  if (!isRecord(error)) return undefined
  const code = error["error_code"] ?? error["code"]
  return typeof code === "string" ? code : undefined
}

export const shapeOf = ({ body, status }: Answer): Shape => {
  const value = parse(body)
  return isRecord(value) && "request_id" in value
    ? { status, envelope: describe(value), code: codeOf(value) }
    : { status, envelope: undefined, code: undefined }
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const requiredFields: ReadonlyArray<readonly [name: string, pattern: RegExp]> = [
  ["content-type", /^application\/json$/],
  ["cache-control", /^no-store$/],
  ["x-ratelimit-limit", /^[1-9]\d*$/],
  ["x-ratelimit-remaining", /^\d+$/],
  ["x-ratelimit-reset", /^\d{10}$/],
]

const envelopeFaults = (answer: Answer): ReadonlyArray<string> => {
  const value = parse(answer.body)
  if (!isRecord(value) || !("request_id" in value)) return []
  const fields = requiredFields
    .filter(([name, pattern]) => !pattern.test(answer.headers[name] ?? ""))
    .map(([name]) => `invalid header ${name}`)
  return [
    ...fields,
    ...(uuid.test(String(value["request_id"])) ? [] : ["request_id is not a UUID"]),
    ...(value["code"] === answer.status ? [] : ["code is not the status"]),
  ]
}

const trace = /\n\s+at |node_modules|node:internal|\.ts:\d/

/** Returns what no answer may be, whatever the request. */
export const faultsOf = (answer: Answer, secret: string): ReadonlyArray<string> => [
  ...(answer.status < 200 || answer.status > 499 ? [`status ${answer.status}`] : []),
  ...(trace.test(answer.body) ? ["a stack trace"] : []),
  ...(answer.body.includes(secret) ? ["a secret"] : []),
  ...envelopeFaults(answer),
]
