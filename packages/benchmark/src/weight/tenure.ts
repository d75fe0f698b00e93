/** What Tenure adds to the bundle of a backend on Express that imports it from `tenure`. */

export { Tenure } from "tenure"
export { membershipMiddleware } from "tenure/express"
export { memory } from "tenure/memory"
