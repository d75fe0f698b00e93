/** The methods of requests that are told apart. A client can send any word as a method. */

const methods = ["_OTHER", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const

/** A method, or `_OTHER` for all others, as the conventions of OpenTelemetry have it. */
export type HttpMethod = (typeof methods)[number]

const known: ReadonlyMap<string, HttpMethod> = new Map(methods.map((method) => [method, method]))

/** Returns the method of a request. */
export const of = (method: string): HttpMethod => known.get(method) ?? "_OTHER"
