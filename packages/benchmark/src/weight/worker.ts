/** What Tenure adds to the bundle of a worker. */

export * as Tenure from "@tenure/core/Tenure"
export { fetchHandler } from "@tenure/fetch"
export { memory } from "@tenure/memory"
