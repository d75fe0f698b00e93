export * from "@tenure/embedded"
