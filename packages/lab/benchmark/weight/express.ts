export { createTenure } from "@tenure/core"
export { membershipMiddleware } from "@tenure/express"
export { memory } from "@tenure/memory"
