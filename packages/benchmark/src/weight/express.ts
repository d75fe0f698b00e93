/** What Tenure adds to the bundle of a backend on Express. */

export * as Tenure from "@tenure/core/Tenure"
export { membershipMiddleware } from "@tenure/express"
export { memory } from "@tenure/memory"
