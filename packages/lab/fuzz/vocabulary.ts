/** What requests and hosts both know. */

/** The path that every host mounts the API under. */
export const basePath = "/members"

/** The only project, and its members. */
export const projectId = "p1"
export const userIds = ["1001", "1002", "1003"]

/** The tokens of a client and of an admin; both keys open the project. */
export const token = `fuzz-token-${"x".repeat(32)}`
export const adminToken = `fuzz-admin-${"x".repeat(32)}`

/** Stands in a request for the id of a webhook that exists. As long as an id. */
export const webhookPlaceholder = "f022a000-0000-4000-8000-0000000000f2"

/** Splits a text into its words. */
export const words = (text: string): ReadonlyArray<string> => text.trim().split(/\s+/)

/** Parses values of JSON. */
export const values = (text: string): ReadonlyArray<unknown> => JSON.parse(`[${text}]`)
