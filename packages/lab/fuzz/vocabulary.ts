/** What requests and hosts both know. */

/** The path that every host mounts the API under. */
export const basePath = "/members"

/** The only project, and its members. */
export const projectId = "p1"
export const userIds = ["1001", "1002", "1003"]

/** A client's and an admin's token; both keys open the project. */
export const token = `fuzz-token-${"x".repeat(32)}`
export const adminToken = `fuzz-admin-${"x".repeat(32)}`

/** Stands for an existing webhook's id in a request. As long as an id. */
export const webhookPlaceholder = "f022a000-0000-4000-8000-0000000000f2"

/** Splits a text into its words. */
export const words = (text: string): ReadonlyArray<string> => text.trim().split(/\s+/)

/** Parses JSON values. */
export const values = (text: string): ReadonlyArray<unknown> => JSON.parse(`[${text}]`)
