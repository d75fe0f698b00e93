export * from "@tenure/express"
