export * from "@tenure/fetch"
