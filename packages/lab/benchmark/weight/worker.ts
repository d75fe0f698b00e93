export { createTenure } from "@tenure/core"
export { fetchHandler } from "@tenure/fetch"
export { memory } from "@tenure/memory"
