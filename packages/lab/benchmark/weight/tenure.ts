export { createTenure } from "tenure"
export { membershipMiddleware } from "tenure/express"
export { memory } from "tenure/memory"
