/** What a worker gains. */

export * as Tenure from "@tenure/core/Tenure"
export { fetchHandler } from "@tenure/fetch"
export { memory } from "@tenure/memory"
