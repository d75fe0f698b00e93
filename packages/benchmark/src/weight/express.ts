/** What a backend on Express gains. */

export * as Tenure from "@tenure/core/Tenure"
export { membershipMiddleware } from "@tenure/express"
export { memory } from "@tenure/memory"
